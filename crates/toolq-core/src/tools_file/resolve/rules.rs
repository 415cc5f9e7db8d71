//! Who decides whether a tool's calls are concurrency-safe: the tool, else the first rule whose glob matches its name,
//! else its effect.

use globset::{GlobBuilder, GlobMatcher};
use serde_json::Value;

use crate::tools_file::keys::{RuleFile, SafetyForm};
use crate::tools_file::resolve::diagnostics::Findings;
use crate::tools_file::spanned::{Placed, Setting};
use crate::types::{Effect, Rule, Safety, Span};

/// The rules of a file.
pub(crate) struct Rules(Vec<Matcher>);

struct Matcher {
    rule: Rule,
    glob: GlobMatcher,
    span: Span,
}

impl Rules {
    /// Reads the rules; one that says nothing is an error.
    pub(crate) fn read(
        rules: &Setting<Vec<Setting<RuleFile>>>,
        findings: &mut Findings<'_>,
    ) -> Self {
        let each = rules.items().filter_map(|rule| matcher(rule, findings));
        Self(each.collect())
    }

    /// Warns of rules that no tool is named by.
    pub(crate) fn warn_of_idle(&self, names: &[&str], findings: &mut Findings<'_>) {
        for rule in &self.0 {
            if !names.iter().any(|name| rule.glob.is_match(name)) {
                findings.warning(
                    rule.span,
                    format!("no tool is named like `{}`", rule.rule.glob),
                    "matches nothing",
                    "a rule matches whole names; `*` stands for any text",
                );
            }
        }
    }

    /// Who decides for the tool `name`.
    pub(crate) fn safety(
        &self,
        name: &str,
        declared: Option<&SafetyForm>,
        effect: Option<Effect>,
    ) -> Safety {
        match declared {
            Some(SafetyForm::Boolean(safe)) => return Safety::Declared(*safe),
            Some(SafetyForm::Table(table)) => {
                return Safety::When(table.when.value().cloned().unwrap_or(Value::Bool(false)));
            }
            None => {}
        }
        if let Some(rule) = self.0.iter().find(|rule| rule.glob.is_match(name)) {
            return Safety::Rule(rule.rule.clone());
        }
        match effect {
            Some(effect) => Safety::Effect(effect == Effect::Read),
            None => Safety::Default,
        }
    }
}

fn matcher(rule: &Placed<RuleFile>, findings: &mut Findings<'_>) -> Option<Matcher> {
    for (name, missing) in [
        ("tools", rule.value.tools.is_missing()),
        ("concurrency_safe", rule.value.concurrency_safe.is_missing()),
    ] {
        if missing {
            findings.error(
                rule.span,
                format!("the rule has no `{name}`"),
                "this rule",
                "a rule is `{tools: \"get_*\", concurrency_safe: true}`",
            );
        }
    }
    let glob = rule.value.tools.given()?;
    let safe = *rule.value.concurrency_safe.value()?;
    match GlobBuilder::new(&glob.value)
        .literal_separator(false)
        .build()
    {
        Ok(built) => Some(Matcher {
            rule: Rule {
                glob: glob.value.clone(),
                safe,
            },
            glob: built.compile_matcher(),
            span: glob.span,
        }),
        Err(error) => {
            findings.error(
                glob.span,
                format!("`{}` is no glob: {}", glob.value, error.kind()),
                "",
                "globs have `*`, `?`, `[a-z]` and `{one,other}`",
            );
            None
        }
    }
}
