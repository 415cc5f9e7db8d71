//! Settings that are inherited: a tool's own key takes precedence, then the first of `rules` that matches its name and has
//! the key, then the `defaults` of its server, then those of the file. Tables are layered key by key.

use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::tools_file::context::Diagnostics;
use crate::tools_file::spanned::{Field, Spanned};
use crate::tools_file::tables::calls::{check_max_parallel, resolve_start_limits};
use crate::tools_file::tables::limits::{
    LimitsFile, RetryFile, TimeoutForm, check_max_output, check_resource_limits, check_retry,
    check_timeout, layer_limits, layer_retries, layer_timeouts, resolve_retry, resolve_timeout,
};
use crate::tools_file::tables::sandbox::{SandboxForm, check_shared_sandbox, layer_sandboxes};
use crate::tools_file::tables::tool::{RuleFile, ToolFile};
use crate::tools_file::tables::values::{RateText, SizeText};
use crate::tools_file::tables::when::{ApproveForm, SafetyForm, resolve_approval};
use crate::types::{
    DEFAULT_MAX_OUTPUT, DEFAULT_MAX_SAVED, Effect, Leftovers, OnDoubt, OnFailure, OutputKind,
    RuleSetting, SafetyPolicy, SafetyRule, Span, Tool,
};

/// Declares the settings of a tool that can be inherited: this is their only list. Each has its type, and how a value is layered
/// over another one.
macro_rules! settings {
    ($($(#[$note:meta])* $key:ident: $value:ty => $merge:expr,)*) => {
        /// What a tool, a rule or `defaults` says about settings that can be inherited.
        #[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
        #[serde(default)]
        pub struct Settings {
            $($(#[$note])* pub $key: Field<$value>,)*
        }

        impl Settings {
            /// Returns these settings, and those of `lower` for what they leave out.
            fn over(&self, lower: &Self) -> Self {
                Self {
                    $($key: self.$key.over(&lower.$key, $merge),)*
                }
            }

            /// Returns the keys that are there.
            fn keys(&self) -> impl Iterator<Item = &'static str> {
                let keys = [$((stringify!($key), self.$key.is_missing()),)*];
                keys.into_iter().filter(|(_, is_missing)| !is_missing).map(|(key, _)| key)
            }
        }
    };
}

settings! {
    /// Whether calls start only after they are approved: `true`, `false`, `writes` (if the tool isn't `read`), or a schema
    /// of the inputs that need it. Default: false.
    approve: ApproveForm => first,
    /// Maximum number of calls of the tool that run at once. Default: as many as `concurrency` lets run.
    #[schemars(range(min = 1))]
    max_parallel: u32 => first,
    /// How often its calls and their retries start: `10/s`, `600/m` or `100/h`. Default: no limit.
    rate: RateText => first,
    /// Time limit of one attempt, or a table of time limits. Default: 30s.
    timeout: TimeoutForm => layer_timeouts,
    /// Format of the output: `text` (the default), `json`, or `content` blocks.
    output: OutputKind => first,
    /// Maximum size of the output that reaches the model. Default: 64KiB.
    max_output: SizeText => first,
    /// Maximum size of a truncated output that is saved next to the session log. Default: 64MiB.
    max_saved: SizeText => first,
    /// When to retry a failed attempt or, for an agent, a failed API request. Default: once, when rate limited.
    retry: RetryFile => layer_retries,
    /// What a failure does to the other calls of its turn. Default: `continue`.
    on_failure: OnFailure => first,
    /// What a call in doubt does to the later calls of its turn: `stop` (they don't run until it is resolved) or
    /// `continue`. Default: `stop`.
    on_doubt: OnDoubt => first,
    /// Number of consecutive failures after which calls of the tool are answered "paused". Default: 0 (never); 3 for
    /// calls that an agent makes.
    pause_after_failures: u32 => first,
    /// Whether to convert inputs that are invalid only because of scalar types (`"3"` for 3). Default: true.
    coerce: bool => first,
    /// What the programs of the tool can reach. Default: what the user who runs toolq can.
    sandbox: SandboxForm => layer_sandboxes,
}

/// What a rule or `defaults` says about settings, or several of them on top of each other.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Layer {
    /// What to do with processes that are still running after a command exits.
    pub leftovers: Field<Leftovers>,
    /// Resource limits of a command.
    pub limits: Field<LimitsFile>,
    /// What a tool has beside its `command`.
    #[serde(rename = "$settings")]
    #[schemars(flatten)]
    pub tool: Settings,
}

impl Layer {
    /// Returns this layer, and `lower` for what it leaves out.
    pub(crate) fn over(&self, lower: &Self) -> Self {
        Self {
            tool: self.tool.over(&lower.tool),
            leftovers: self.leftovers.or(&lower.leftovers),
            limits: self.limits.over(&lower.limits, layer_limits),
        }
    }

    /// Returns the keys that are there.
    fn keys(&self) -> impl Iterator<Item = &'static str> {
        let leftovers = (!self.leftovers.is_missing()).then_some("leftovers");
        let limits = (!self.limits.is_missing()).then_some("limits");
        self.tool.keys().chain(leftovers).chain(limits)
    }
}

/// Layers values that hide each other as a whole.
fn first<T: Clone>(upper: &Spanned<T>, _: &Spanned<T>) -> T {
    upper.value.clone()
}

impl Layer {
    /// Reports values under which no call could run. They are checked once, where they are written, no matter how many tools
    /// inherit them.
    pub(crate) fn check(&self, diagnostics: &mut Diagnostics) {
        check_timeout(&self.tool.timeout, diagnostics);
        check_retry(&self.tool.retry, diagnostics);
        check_max_output(&self.tool.max_output, diagnostics);
        check_max_parallel(&self.tool.max_parallel, diagnostics);
    }

    /// Like [`check`](Self::check), for settings that aren't about one tool.
    pub(crate) fn check_shared(&self, diagnostics: &mut Diagnostics) {
        self.check(diagnostics);
        check_resource_limits(&self.limits, diagnostics);
        check_shared_sandbox(&self.tool.sandbox, diagnostics);
    }

    /// Returns a tool with these settings, and without anything else. `is_agent` is about its backing.
    pub(crate) fn resolve(&self, effect: Effect, is_agent: bool) -> Tool {
        Tool {
            effect,
            approve: resolve_approval(self.tool.approve.value(), effect),
            start_limits: resolve_start_limits(&self.tool.max_parallel, &self.tool.rate),
            timeout: resolve_timeout(&self.tool.timeout),
            output: self.tool.output.copied().unwrap_or_default(),
            max_output: self
                .tool
                .max_output
                .value()
                .map_or(DEFAULT_MAX_OUTPUT, |size| size.0),
            max_saved: self
                .tool
                .max_saved
                .value()
                .map_or(DEFAULT_MAX_SAVED, |size| size.0),
            // Requests to a model's API have no effect.
            retry: resolve_retry(&self.tool.retry, (!is_agent).then_some(effect)),
            on_failure: self.tool.on_failure.copied().unwrap_or_default(),
            on_doubt: self.tool.on_doubt.copied().unwrap_or_default(),
            pause_after_failures: self.tool.pause_after_failures.copied(),
            coerce: self.tool.coerce.copied().unwrap_or(true),
            ..Tool::default()
        }
    }
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

    /// Returns which rules set keys that `tool` leaves out, except for its concurrency safety.
    pub(crate) fn list_settings(&self, name: &str, tool: &ToolFile) -> Vec<RuleSetting> {
        let effect_key = |effect: &Field<Effect>| (!effect.is_missing()).then_some("effect");
        // The keys of its `command` aren't looked at.
        let mut set_keys: Vec<&str> = tool.settings.keys().collect();
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
    let settings = &file.settings;
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
