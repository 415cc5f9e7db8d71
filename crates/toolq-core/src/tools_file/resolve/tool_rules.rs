//! Resolves `rules`: settings by tool name. A tool's own key takes precedence, then the first rule that matches its name
//! and has the key, then `defaults`.

use globset::{GlobBuilder, GlobMatcher};
use serde_json::Value;

use crate::tools_file::keys::{Defaults, RuleFile, SafetyForm, ToolFile};
use crate::tools_file::resolve::attempt_limits;
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::resolve::resource_limits;
use crate::tools_file::resolve::sandbox;
use crate::tools_file::resolve::setting_layers;
use crate::tools_file::resolve::start_limits;
use crate::tools_file::spanned::{Field, Spanned};
use crate::types::{Effect, RuleSetting, SafetyPolicy, SafetyRule, Span};

/// The rules of a file.
pub(crate) struct ToolRules<'f>(Vec<RuleMatcher<'f>>);

struct RuleMatcher<'f> {
    file: &'f RuleFile,
    glob_text: &'f str,
    glob: GlobMatcher,
    span: Span,
}

impl<'f> ToolRules<'f> {
    /// Reads the rules, and reports those that are incomplete or have an invalid glob.
    pub(crate) fn read(
        rules: &'f Field<Vec<Field<RuleFile>>>,
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
                    format!("no tool name matches `{}`", matcher.glob_text),
                    "matches nothing",
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
            .find_map(|rule| rule.file.effect.value().copied())
    }

    /// Returns the defaults of the tool `name`: those of its rules, and below them those of the file.
    pub(crate) fn layer_defaults(&self, name: &str, defaults: &Defaults) -> Defaults {
        let rules = self.matching(name).map(|rule| rule.file.to_defaults());
        let layered = rules.reduce(|upper, lower| setting_layers::layer(&upper, &lower));
        match layered {
            Some(upper) => setting_layers::layer(&upper, defaults),
            None => defaults.clone(),
        }
    }

    /// Returns which rules set keys that `tool` leaves out, except for its concurrency safety.
    pub(crate) fn list_settings(&self, name: &str, tool: &ToolFile) -> Vec<RuleSetting> {
        let mut settings: Vec<RuleSetting> = Vec::new();
        for rule in self.matching(name) {
            let defaults = rule.file.to_defaults();
            let effect = (!rule.file.effect.is_missing()).then_some("effect");
            for key in effect
                .into_iter()
                .chain(setting_layers::present_keys(&defaults))
            {
                let is_set = settings.iter().any(|setting| setting.key == key);
                if !is_set && !setting_layers::has_own_key(tool, key) {
                    settings.push(RuleSetting {
                        key,
                        glob: rule.glob_text.to_owned(),
                    });
                }
            }
        }
        settings
    }

    /// Returns what decides whether calls of the tool `name` are concurrency-safe. `effect` is its own.
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
        let safety_rule = |decide: fn(&RuleFile) -> Option<bool>| {
            self.matching(name).find_map(|rule| {
                Some(SafetyPolicy::Rule(SafetyRule {
                    glob: rule.glob_text.into(),
                    safe: decide(rule.file)?,
                }))
            })
        };
        if let Some(policy) = safety_rule(|rule| rule.concurrency_safe.value().copied()) {
            return policy;
        }
        if let Some(effect) = effect {
            return SafetyPolicy::Effect(effect == Effect::Read);
        }
        safety_rule(|rule| rule.effect.value().map(|effect| *effect == Effect::Read))
            .unwrap_or(SafetyPolicy::Default)
    }
}

impl RuleFile {
    /// Returns the settings that `defaults` has, too.
    fn to_defaults(&self) -> Defaults {
        Defaults {
            approve: self.approve.clone(),
            max_parallel: self.max_parallel.clone(),
            rate: self.rate.clone(),
            timeout: self.timeout.clone(),
            output: self.output.clone(),
            max_output: self.max_output.clone(),
            max_saved: self.max_saved.clone(),
            retry: self.retry.clone(),
            on_failure: self.on_failure.clone(),
            on_doubt: self.on_doubt.clone(),
            pause_after_failures: self.pause_after_failures.clone(),
            coerce: self.coerce.clone(),
            leftovers: self.leftovers.clone(),
            limits: self.limits.clone(),
            sandbox: self.sandbox.clone(),
            ..Defaults::default()
        }
    }
}

fn build_matcher<'f>(
    rule: &'f Spanned<RuleFile>,
    diagnostics: &mut Diagnostics<'_>,
) -> Option<RuleMatcher<'f>> {
    let file = &rule.value;
    let defaults = file.to_defaults();
    attempt_limits::check_timeout(&file.timeout, diagnostics);
    attempt_limits::check_retry(&file.retry, diagnostics);
    attempt_limits::check_max_output(&file.max_output, diagnostics);
    start_limits::check_start_limits(&file.max_parallel, &file.rate, diagnostics);
    resource_limits::check_resource_limits(&file.limits, diagnostics);
    sandbox::check_shared_sandbox(&file.sandbox, diagnostics);
    let sets_nothing = file.concurrency_safe.is_missing()
        && file.effect.is_missing()
        && setting_layers::present_keys(&defaults).next().is_none();
    for (is_missing, message) in [
        (file.tools.is_missing(), "the rule has no `tools`"),
        (sets_nothing, "the rule sets nothing"),
    ] {
        if is_missing {
            diagnostics.error(
                rule.span,
                message,
                "this rule",
                "write a rule as `{tools: \"get_*\", concurrency_safe: true}`",
            );
        }
    }
    let glob = file.tools.spanned()?;
    match GlobBuilder::new(&glob.value)
        .literal_separator(false)
        .build()
    {
        Ok(built) => Some(RuleMatcher {
            file,
            glob_text: &glob.value,
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
