//! Settings that are inherited: a tool's own key takes precedence, then the first of `rules` that matches its name and has
//! the key, then the `defaults` of its server, then those of the file. Tables are layered key by key.

use globset::{GlobBuilder, GlobMatcher};
use serde_json::Value;

use crate::tools_file::context::Diagnostics;
use crate::tools_file::spanned::{Field, Spanned};
use crate::tools_file::tables::calls::{check_max_parallel, resolve_start_limits};
use crate::tools_file::tables::limits::{
    LimitsFile, TimeoutForm, check_max_output, check_resource_limits, check_timeout, layer_limits,
    layer_timeouts, resolve_timeout,
};
use crate::tools_file::tables::retry::{RetryFile, check_retry, layer_retries, resolve_retry};
use crate::tools_file::tables::sandbox::{SandboxForm, check_shared_sandbox, layer_sandboxes};
use crate::tools_file::tables::tool::{Defaults, RuleFile, ToolFile};
use crate::tools_file::tables::values::{RateText, SizeText};
use crate::tools_file::tables::when::{ApproveForm, SafetyForm, resolve_approval};
use crate::types::{
    DEFAULT_MAX_OUTPUT, DEFAULT_MAX_SAVED, Effect, Leftovers, OnDoubt, OnFailure, OutputKind,
    RuleSetting, SafetyPolicy, SafetyRule, Span, Tool,
};

/// Declares the settings that can be inherited: this is their only list. Each has its type, and how a value is layered over
/// another one.
macro_rules! settings {
    (
        tool { $($own:ident: $own_type:ty => $own_merge:expr,)* }
        command { $($program:ident: $program_type:ty => $program_merge:expr,)* }
    ) => {
        /// What a tool, a rule or `defaults` says about settings that can be inherited.
        #[derive(Debug, Clone, Default)]
        pub(crate) struct Settings {
            $(pub(crate) $own: Field<$own_type>,)*
            $(pub(crate) $program: Field<$program_type>,)*
        }

        impl Settings {
            /// Returns these settings, and those of `lower` for what they leave out.
            pub(crate) fn over(&self, lower: &Self) -> Self {
                Self {
                    $($own: self.$own.over(&lower.$own, $own_merge),)*
                    $($program: self.$program.over(&lower.$program, $program_merge),)*
                }
            }

            /// Returns the keys that are there.
            pub(crate) fn keys(&self) -> impl Iterator<Item = &'static str> {
                let keys = [
                    $((stringify!($own), self.$own.is_missing()),)*
                    $((stringify!($program), self.$program.is_missing()),)*
                ];
                keys.into_iter().filter(|(_, is_missing)| !is_missing).map(|(key, _)| key)
            }
        }

        impl From<&RuleFile> for Settings {
            fn from(rule: &RuleFile) -> Self {
                Self {
                    $($own: rule.$own.clone(),)*
                    $($program: rule.$program.clone(),)*
                }
            }
        }

        impl From<&Defaults> for Settings {
            fn from(defaults: &Defaults) -> Self {
                Self {
                    $($own: defaults.$own.clone(),)*
                    $($program: defaults.$program.clone(),)*
                }
            }
        }

        impl From<&ToolFile> for Settings {
            fn from(tool: &ToolFile) -> Self {
                Self {
                    $($own: tool.$own.clone(),)*
                    ..Self::default()
                }
            }
        }
    };
}

settings! {
    tool {
        approve: ApproveForm => first,
        max_parallel: u32 => first,
        rate: RateText => first,
        timeout: TimeoutForm => layer_timeouts,
        output: OutputKind => first,
        max_output: SizeText => first,
        max_saved: SizeText => first,
        retry: RetryFile => layer_retries,
        on_failure: OnFailure => first,
        on_doubt: OnDoubt => first,
        pause_after_failures: u32 => first,
        coerce: bool => first,
        sandbox: SandboxForm => layer_sandboxes,
    }
    // A tool has these in its `command`.
    command {
        leftovers: Leftovers => first,
        limits: LimitsFile => layer_limits,
    }
}

/// Layers values that hide each other as a whole.
fn first<T: Clone>(upper: &Spanned<T>, _: &Spanned<T>) -> T {
    upper.value.clone()
}

impl Settings {
    /// Reports values under which no call could run. They are checked once, where they are written, no matter how many tools
    /// inherit them.
    pub(crate) fn check(&self, diagnostics: &mut Diagnostics) {
        check_timeout(&self.timeout, diagnostics);
        check_retry(&self.retry, diagnostics);
        check_max_output(&self.max_output, diagnostics);
        check_max_parallel(&self.max_parallel, diagnostics);
    }

    /// Like [`check`](Self::check), for settings that aren't about one tool.
    pub(crate) fn check_shared(&self, diagnostics: &mut Diagnostics) {
        self.check(diagnostics);
        check_resource_limits(&self.limits, diagnostics);
        check_shared_sandbox(&self.sandbox, diagnostics);
    }

    /// Returns a tool with these settings, and without anything else. `is_agent` is about its backing.
    pub(crate) fn resolve(&self, effect: Effect, is_agent: bool) -> Tool {
        Tool {
            effect,
            approve: resolve_approval(self.approve.value(), effect),
            start_limits: resolve_start_limits(&self.max_parallel, &self.rate),
            timeout: resolve_timeout(&self.timeout),
            output: self.output.copied().unwrap_or_default(),
            max_output: self
                .max_output
                .value()
                .map_or(DEFAULT_MAX_OUTPUT, |size| size.0),
            max_saved: self
                .max_saved
                .value()
                .map_or(DEFAULT_MAX_SAVED, |size| size.0),
            // Requests to a model's API have no effect.
            retry: resolve_retry(&self.retry, (!is_agent).then_some(effect)),
            on_failure: self.on_failure.copied().unwrap_or_default(),
            on_doubt: self.on_doubt.copied().unwrap_or_default(),
            pause_after_failures: self.pause_after_failures.copied(),
            coerce: self.coerce.copied().unwrap_or(true),
            ..Tool::default()
        }
    }
}

/// The rules of a file.
pub(crate) struct ToolRules<'f>(Vec<RuleMatcher<'f>>);

struct RuleMatcher<'f> {
    file: &'f RuleFile,
    settings: Settings,
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
    pub(crate) fn layer(&self, name: &str, defaults: &Settings) -> Settings {
        let mut layered = Settings::default();
        for rule in self.matching(name) {
            layered = layered.over(&rule.settings);
        }
        layered.over(defaults)
    }

    /// Returns which rules set keys that `tool` leaves out, except for its concurrency safety.
    pub(crate) fn list_settings(&self, name: &str, tool: &ToolFile) -> Vec<RuleSetting> {
        let effect_key = |effect: &Field<Effect>| (!effect.is_missing()).then_some("effect");
        // The keys of its `command` aren't looked at.
        let mut set_keys: Vec<&str> = Settings::from(tool).keys().collect();
        set_keys.extend(effect_key(&tool.effect));
        let mut settings = Vec::new();
        for rule in self.matching(name) {
            for key in effect_key(&rule.file.effect)
                .into_iter()
                .chain(rule.settings.keys())
            {
                if !set_keys.contains(&key) {
                    set_keys.push(key);
                    settings.push(RuleSetting {
                        key,
                        glob: rule.glob_text.to_owned(),
                    });
                }
            }
        }
        settings
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
    let settings = Settings::from(file);
    settings.check_shared(diagnostics);
    let sets_nothing = file.concurrency_safe.is_missing()
        && file.effect.is_missing()
        && settings.keys().next().is_none();
    for (is_missing, message) in [
        (file.tools.is_missing(), "the rule has no `tools`"),
        (sets_nothing, "the rule sets nothing"),
    ] {
        if is_missing {
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
