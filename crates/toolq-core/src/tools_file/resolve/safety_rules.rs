//! Determines what decides whether a tool's calls are concurrency-safe: the tool itself, else the first rule whose glob
//! matches its name, else its effect.

use globset::{GlobBuilder, GlobMatcher};
use serde_json::Value;

use crate::tools_file::keys::{RuleFile, SafetyForm};
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::spanned::{Field, Spanned};
use crate::types::{Effect, SafetyPolicy, SafetyRule, Span};

/// The rules of a file.
pub(crate) struct SafetyRules(Vec<RuleMatcher>);

struct RuleMatcher {
    rule: SafetyRule,
    glob: GlobMatcher,
    span: Span,
}

impl SafetyRules {
    /// Reads the rules, and reports those that are incomplete or have an invalid glob.
    pub(crate) fn read(
        rules: &Field<Vec<Field<RuleFile>>>,
        diagnostics: &mut Diagnostics<'_>,
    ) -> Self {
        let each = rules
            .items()
            .filter_map(|rule| build_matcher(rule, diagnostics));
        Self(each.collect())
    }

    /// Warns about rules that match no tool.
    pub(crate) fn warn_about_unused(&self, names: &[&str], diagnostics: &mut Diagnostics<'_>) {
        for matcher in &self.0 {
            if !names.iter().any(|name| matcher.glob.is_match(name)) {
                diagnostics.warning(
                    matcher.span,
                    format!("no tool name matches `{}`", matcher.rule.glob),
                    "matches nothing",
                    "a rule matches whole names; `*` matches any text",
                );
            }
        }
    }

    /// Returns what decides for the tool `name`.
    pub(crate) fn resolve_safety(
        &self,
        name: &str,
        declared: Option<&SafetyForm>,
        effect: Option<Effect>,
    ) -> SafetyPolicy {
        match declared {
            Some(SafetyForm::Boolean(safe)) => return SafetyPolicy::Declared(*safe),
            Some(SafetyForm::Table(table)) => {
                return SafetyPolicy::When(
                    table.when.value().cloned().unwrap_or(Value::Bool(false)),
                );
            }
            None => {}
        }
        if let Some(rule) = self.0.iter().find(|rule| rule.glob.is_match(name)) {
            return SafetyPolicy::Rule(rule.rule.clone());
        }
        match effect {
            Some(effect) => SafetyPolicy::Effect(effect == Effect::Read),
            None => SafetyPolicy::Default,
        }
    }
}

fn build_matcher(
    rule: &Spanned<RuleFile>,
    diagnostics: &mut Diagnostics<'_>,
) -> Option<RuleMatcher> {
    for (name, missing) in [
        ("tools", rule.value.tools.is_missing()),
        ("concurrency_safe", rule.value.concurrency_safe.is_missing()),
    ] {
        if missing {
            diagnostics.error(
                rule.span,
                format!("the rule has no `{name}`"),
                "this rule",
                "write a rule as `{tools: \"get_*\", concurrency_safe: true}`",
            );
        }
    }
    let glob = rule.value.tools.spanned()?;
    let safe = *rule.value.concurrency_safe.value()?;
    match GlobBuilder::new(&glob.value)
        .literal_separator(false)
        .build()
    {
        Ok(built) => Some(RuleMatcher {
            rule: SafetyRule {
                glob: glob.value.clone(),
                safe,
            },
            glob: built.compile_matcher(),
            span: glob.span,
        }),
        Err(error) => {
            diagnostics.error(
                glob.span,
                format!("`{}` isn't a valid glob: {}", glob.value, error.kind()),
                "",
                "globs can contain `*`, `?`, `[a-z]` and `{one,other}`",
            );
            None
        }
    }
}
