//! `rules`: settings of all tools with matching names, for whatever these leave out.

use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::tools_file::context::Diagnostics;
use crate::tools_file::spanned::{Field, Spanned};
use crate::tools_file::tables::settings::Layer;
use crate::tools_file::tables::tool::ToolFile;
use crate::tools_file::tables::when::SafetyForm;
use crate::types::{Effect, SafetyPolicy, SafetyRule, Span};

/// Settings of all tools with matching names, for whatever these leave out. For each key, the first matching rule counts.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["tools"], "minProperties" = 2))]
pub struct RuleFile {
    /// Glob for tool names: `*`, `?`, `[a-z]`, `{get,list}_*`.
    pub tools: Field<String>,
    /// Whether their calls may run in parallel with other safe calls.
    pub concurrency_safe: Field<bool>,
    /// What they do to the world.
    pub effect: Field<Effect>,
    /// What can also be inherited.
    #[serde(rename = "$settings")]
    #[schemars(flatten)]
    pub settings: Layer,
}

/// The rules of a file.
pub(crate) struct ToolRules<'f>(Vec<RuleMatcher<'f>>);

struct RuleMatcher<'f> {
    file: &'f RuleFile,
    settings: &'f Layer,
    glob_text: &'f str,
    glob: GlobMatcher,
    span: Span,
}

impl<'f> ToolRules<'f> {
    /// Reads the rules, and reports those that are incomplete or have an invalid glob.
    pub(crate) fn read(
        rules: &'f Field<Vec<Field<RuleFile>>>,
        diagnostics: &mut Diagnostics,
    ) -> Self {
        Self(
            rules
                .items()
                .filter_map(|rule| build_matcher(rule, diagnostics))
                .collect(),
        )
    }

    /// Warns about rules that match no tool.
    pub(crate) fn warn_about_unused(&self, names: &[&str], diagnostics: &mut Diagnostics) {
        for matcher in &self.0 {
            if !names.iter().any(|name| matcher.glob.is_match(name)) {
                diagnostics.warning(
                    (matcher.span, "matches nothing"),
                    format!("no tool name matches `{}`", matcher.glob_text),
                    "a rule matches whole names; `*` matches any text",
                );
            }
        }
    }

    /// Returns the rules that match the tool `name`.
    fn matching(&self, name: &str) -> impl Iterator<Item = &RuleMatcher<'f>> {
        self.0.iter().filter(move |rule| rule.glob.is_match(name))
    }

    /// Returns the effect that a rule gives the tool `name`.
    pub(crate) fn effect(&self, name: &str) -> Option<Effect> {
        self.matching(name)
            .find_map(|rule| rule.file.effect.copied())
    }

    /// Returns what the tool `name` inherits: the settings of its rules, and below them `defaults`.
    pub(crate) fn layer(&self, name: &str, defaults: &Layer) -> Layer {
        let mut layered = Layer::default();
        for rule in self.matching(name) {
            layered = layered.over(rule.settings);
        }
        layered.over(defaults)
    }

    /// Returns what decides whether calls of the tool `name` are concurrency-safe. What the lock says is below all that
    /// the file says.
    pub(crate) fn resolve_safety(
        &self,
        name: &str,
        tool: &ToolFile,
        locked_effect: Option<Effect>,
    ) -> SafetyPolicy {
        match tool.concurrency_safe.value() {
            Some(SafetyForm::Boolean(safe)) => return SafetyPolicy::Declared(*safe),
            Some(SafetyForm::Table(table)) => {
                return SafetyPolicy::When(
                    table.when.value().cloned().unwrap_or(Value::Bool(false)),
                );
            }
            None => {}
        }
        let safety_rule = |decide: fn(&RuleFile) -> Option<bool>| {
            self.matching(name).find_map(|rule| {
                Some(SafetyPolicy::Rule(SafetyRule {
                    glob: rule.glob_text.into(),
                    safe: decide(rule.file)?,
                }))
            })
        };
        if let Some(policy) = safety_rule(|rule| rule.concurrency_safe.copied()) {
            return policy;
        }
        let by_effect = |effect: &Effect| SafetyPolicy::Effect(*effect == Effect::Read);
        if let Some(effect) = tool.effect.value() {
            return by_effect(effect);
        }
        safety_rule(|rule| rule.effect.value().map(|effect| *effect == Effect::Read))
            .or(locked_effect.as_ref().map(by_effect))
            .unwrap_or_default()
    }
}

fn build_matcher<'f>(
    rule: &'f Spanned<RuleFile>,
    diagnostics: &mut Diagnostics,
) -> Option<RuleMatcher<'f>> {
    let file = &rule.value;
    let settings = &file.settings;
    settings.check_shared(diagnostics);
    let sets_nothing =
        file.concurrency_safe.is_missing() && file.effect.is_missing() && settings.is_empty();
    for (is_wrong, message) in [
        (file.tools.is_missing(), "the rule has no `tools`"),
        (sets_nothing, "the rule sets nothing"),
    ] {
        if is_wrong {
            diagnostics.error(
                (rule.span, "this rule"),
                message,
                "write a rule as `{tools: \"get_*\", concurrency_safe: true}`",
            );
        }
    }
    let glob = file.tools.spanned()?;
    Some(RuleMatcher {
        file,
        settings,
        glob_text: &glob.value,
        glob: compile_glob(glob, diagnostics)?,
        span: glob.span,
    })
}

/// Compiles a glob for whole names, or reports why it isn't one.
pub(crate) fn compile_glob(
    glob: &Spanned<String>,
    diagnostics: &mut Diagnostics,
) -> Option<GlobMatcher> {
    let built = GlobBuilder::new(&glob.value)
        .literal_separator(false)
        .build();
    if let Err(error) = &built {
        diagnostics.error(
            glob.span,
            format!("`{}` isn't a valid glob: {}", glob.value, error.kind()),
            "globs can contain `*`, `?`, `[a-z]` and `{one,other}`",
        );
    }
    Some(built.ok()?.compile_matcher())
}
