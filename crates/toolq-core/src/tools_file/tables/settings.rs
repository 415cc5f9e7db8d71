//! Settings that are inherited: a tool's own key takes precedence, then the first of `rules` that matches its name and has
//! the key, then the `defaults` of its server, then those of the file. Tables are layered key by key.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tools_file::sources::Diagnostics;
use crate::tools_file::spanned::{Field, Spanned, SpannedTable};
use crate::tools_file::tables::arguments::resolve_wrapper;
use crate::tools_file::tables::calls::{RateForm, check_start_limits};
use crate::tools_file::tables::command::{Argv, resolve_cwd};
use crate::tools_file::tables::env::{resolve_default_env, resolve_pass_env};
use crate::tools_file::tables::limits::{
    LimitsFile, RetryFile, TimeoutForm, TimeoutTable, check_max_output, check_resource_limits,
    check_retry, check_timeout,
};
use crate::tools_file::tables::sandbox::{SandboxForm, SandboxTable, check_shared_sandbox};
use crate::tools_file::tables::tool::ToolFile;
use crate::tools_file::tables::values::SizeText;
use crate::tools_file::tables::when::{ApproveForm, SafetyForm};
use crate::tools_file::templates::ToolContext;
use crate::types::{
    CommandWrapper, Effect, Leftovers, OnDoubt, OnFailure, OutputKind, RuleSetting, SafetyPolicy,
    SafetyRule, Span, Template,
};

/// Defaults for keys that a tool leaves out.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Defaults {
    /// Whether calls start only after they are approved.
    pub approve: Field<ApproveForm>,
    /// Maximum number of calls of each tool that run at once.
    #[schemars(range(min = 1))]
    pub max_parallel: Field<u32>,
    /// How often calls of each tool start.
    pub rate: Field<RateForm>,
    /// Time limit of one attempt, or a table of time limits.
    pub timeout: Field<TimeoutForm>,
    /// Format of the output.
    pub output: Field<OutputKind>,
    /// Maximum size of the output that reaches the model.
    pub max_output: Field<SizeText>,
    /// Maximum size of a truncated output that is saved next to the session log.
    pub max_saved: Field<SizeText>,
    /// When to retry a failed attempt. For a `write` tool, only conditions under which the call surely did not run
    /// apply.
    pub retry: Field<RetryFile>,
    /// What a failure does to the other calls of its turn.
    pub on_failure: Field<OnFailure>,
    /// What a call in doubt does to the later calls of its turn.
    pub on_doubt: Field<OnDoubt>,
    /// Number of consecutive failures after which calls of a tool are answered "paused".
    pub pause_after_failures: Field<u32>,
    /// Whether to convert inputs that are invalid only because of scalar types.
    pub coerce: Field<bool>,
    /// What to do with processes that are still running after a command exits.
    pub leftovers: Field<Leftovers>,
    /// Resource limits of a command.
    pub limits: Field<LimitsFile>,
    /// Environment variables of every program: names with templates for their values, without values from the input. A
    /// program's own `env` takes precedence by name. Only in the `defaults` of the file.
    pub env: Field<SpannedTable<String>>,
    /// Variables to pass to every program from toolq's own environment, in addition to its own `pass_env`. Only in the
    /// `defaults` of the file.
    pub pass_env: Field<Vec<Field<String>>>,
    /// Working directory of every program, inside the root. Only in the `defaults` of the file.
    pub cwd: Field<String>,
    /// What the programs of tools and servers can reach.
    pub sandbox: Field<SandboxForm>,
    /// What runs every program: a program and its arguments before that. Only in the `defaults` of the file.
    pub wrapper: Field<Argv>,
}

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
    /// Whether their calls start only after they are approved.
    pub approve: Field<ApproveForm>,
    /// Maximum number of calls of each tool that run at once.
    #[schemars(range(min = 1))]
    pub max_parallel: Field<u32>,
    /// How often calls of each tool start.
    pub rate: Field<RateForm>,
    /// Time limit of one attempt, or a table of time limits.
    pub timeout: Field<TimeoutForm>,
    /// Format of the output.
    pub output: Field<OutputKind>,
    /// Maximum size of the output that reaches the model.
    pub max_output: Field<SizeText>,
    /// Maximum size of a truncated output that is saved next to the session log.
    pub max_saved: Field<SizeText>,
    /// When to retry a failed attempt. For a `write` tool, only conditions under which the call surely did not run
    /// apply.
    pub retry: Field<RetryFile>,
    /// What a failure does to the other calls of its turn.
    pub on_failure: Field<OnFailure>,
    /// What a call in doubt does to the later calls of its turn.
    pub on_doubt: Field<OnDoubt>,
    /// Number of consecutive failures after which calls of a tool are answered "paused".
    pub pause_after_failures: Field<u32>,
    /// Whether to convert inputs that are invalid only because of scalar types.
    pub coerce: Field<bool>,
    /// What to do with processes that are still running after a command exits.
    pub leftovers: Field<Leftovers>,
    /// Resource limits of a command.
    pub limits: Field<LimitsFile>,
    /// What their programs can reach.
    pub sandbox: Field<SandboxForm>,
}

/// Returns the settings of `upper`, with those that it lacks taken from `lower`.
pub(crate) fn layer(upper: &Defaults, lower: &Defaults) -> Defaults {
    Defaults {
        approve: upper.approve.or(&lower.approve),
        max_parallel: upper.max_parallel.or(&lower.max_parallel),
        rate: upper.rate.or(&lower.rate),
        timeout: layer_table(&upper.timeout, &lower.timeout, layer_timeouts),
        output: upper.output.or(&lower.output),
        max_output: upper.max_output.or(&lower.max_output),
        max_saved: upper.max_saved.or(&lower.max_saved),
        retry: layer_table(&upper.retry, &lower.retry, layer_retries),
        on_failure: upper.on_failure.or(&lower.on_failure),
        on_doubt: upper.on_doubt.or(&lower.on_doubt),
        pause_after_failures: upper.pause_after_failures.or(&lower.pause_after_failures),
        coerce: upper.coerce.or(&lower.coerce),
        leftovers: upper.leftovers.or(&lower.leftovers),
        limits: layer_table(&upper.limits, &lower.limits, layer_limits),
        // Only the file's own `defaults` have these; `CommandDefaults` resolves them.
        env: Field::Missing,
        pass_env: Field::Missing,
        cwd: Field::Missing,
        sandbox: layer_table(&upper.sandbox, &lower.sandbox, layer_sandboxes),
        wrapper: Field::Missing,
    }
}

/// Returns the names of the settings that a layer has.
pub(crate) fn present_keys(layer: &Defaults) -> impl Iterator<Item = &'static str> {
    let keys = [
        ("approve", layer.approve.is_missing()),
        ("max_parallel", layer.max_parallel.is_missing()),
        ("rate", layer.rate.is_missing()),
        ("timeout", layer.timeout.is_missing()),
        ("output", layer.output.is_missing()),
        ("max_output", layer.max_output.is_missing()),
        ("max_saved", layer.max_saved.is_missing()),
        ("retry", layer.retry.is_missing()),
        ("on_failure", layer.on_failure.is_missing()),
        ("on_doubt", layer.on_doubt.is_missing()),
        (
            "pause_after_failures",
            layer.pause_after_failures.is_missing(),
        ),
        ("coerce", layer.coerce.is_missing()),
        ("leftovers", layer.leftovers.is_missing()),
        ("limits", layer.limits.is_missing()),
        ("sandbox", layer.sandbox.is_missing()),
    ];
    keys.into_iter()
        .filter(|(_, is_missing)| !is_missing)
        .map(|(key, _)| key)
}

/// Whether a tool has the setting `key` itself. The keys of its `command` aren't looked at.
pub(crate) fn has_own_key(tool: &ToolFile, key: &str) -> bool {
    let own = Defaults {
        approve: tool.approve.clone(),
        max_parallel: tool.max_parallel.clone(),
        rate: tool.rate.clone(),
        timeout: tool.timeout.clone(),
        output: tool.output.clone(),
        max_output: tool.max_output.clone(),
        max_saved: tool.max_saved.clone(),
        retry: tool.retry.clone(),
        on_failure: tool.on_failure.clone(),
        on_doubt: tool.on_doubt.clone(),
        pause_after_failures: tool.pause_after_failures.clone(),
        coerce: tool.coerce.clone(),
        sandbox: tool.sandbox.clone(),
        ..Defaults::default()
    };
    key == "effect" && !tool.effect.is_missing() || present_keys(&own).any(|present| present == key)
}

/// Layers two tables with `merge`, unless one of them is missing or invalid.
fn layer_table<T: Clone>(upper: &Field<T>, lower: &Field<T>, merge: fn(&T, &T) -> T) -> Field<T> {
    match (upper, lower) {
        (Field::Valid(above), Field::Valid(below)) => Field::Valid(Box::new(Spanned {
            value: merge(&above.value, &below.value),
            key_span: above.key_span,
            span: above.span,
        })),
        _ => upper.or(lower),
    }
}

/// Returns the sandbox of a tool or a server: its own, and where that leaves something out, that of the defaults.
pub(crate) fn layer_sandbox(own: &Field<SandboxForm>, defaults: &Defaults) -> Field<SandboxForm> {
    layer_table(own, &defaults.sandbox, layer_sandboxes)
}

fn layer_sandboxes(upper: &SandboxForm, lower: &SandboxForm) -> SandboxForm {
    let (SandboxForm::Table(above), SandboxForm::Table(below)) = (upper, lower) else {
        return upper.clone();
    };
    SandboxForm::Table(Box::new(SandboxTable {
        read: above.read.or(&below.read),
        write: above.write.or(&below.write),
        network: above.network.or(&below.network),
        missing: above.missing.or(&below.missing),
    }))
}

fn layer_timeouts(upper: &TimeoutForm, lower: &TimeoutForm) -> TimeoutForm {
    let (upper, lower) = (timeout_table(upper), timeout_table(lower));
    TimeoutForm::Table(TimeoutTable {
        after: upper.after.or(&lower.after),
        grace: upper.grace.or(&lower.grace),
        slow: upper.slow.or(&lower.slow),
        total: upper.total.or(&lower.total),
    })
}

fn timeout_table(form: &TimeoutForm) -> TimeoutTable {
    match form {
        TimeoutForm::Table(table) => table.clone(),
        TimeoutForm::Text(after) => TimeoutTable {
            after: Field::Valid(Box::new(Spanned {
                key_span: Span::default(),
                span: Span::default(),
                value: *after,
            })),
            ..TimeoutTable::default()
        },
    }
}

fn layer_retries(upper: &RetryFile, lower: &RetryFile) -> RetryFile {
    RetryFile {
        times: upper.times.or(&lower.times),
        on: upper.on.or(&lower.on),
        backoff: upper.backoff.or(&lower.backoff),
        max_backoff: upper.max_backoff.or(&lower.max_backoff),
    }
}

fn layer_limits(upper: &LimitsFile, lower: &LimitsFile) -> LimitsFile {
    LimitsFile {
        cpu: upper.cpu.or(&lower.cpu),
        memory: upper.memory.or(&lower.memory),
        files: upper.files.or(&lower.files),
        processes: upper.processes.or(&lower.processes),
        file_size: upper.file_size.or(&lower.file_size),
    }
}

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
        let layered = rules.reduce(|upper, lower| layer(&upper, &lower));
        match layered {
            Some(upper) => layer(&upper, defaults),
            None => defaults.clone(),
        }
    }

    /// Returns which rules set keys that `tool` leaves out, except for its concurrency safety.
    pub(crate) fn list_settings(&self, name: &str, tool: &ToolFile) -> Vec<RuleSetting> {
        let mut settings: Vec<RuleSetting> = Vec::new();
        for rule in self.matching(name) {
            let defaults = rule.file.to_defaults();
            let effect = (!rule.file.effect.is_missing()).then_some("effect");
            for key in effect.into_iter().chain(present_keys(&defaults)) {
                let is_set = settings.iter().any(|setting| setting.key == key);
                if !is_set && !has_own_key(tool, key) {
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
    check_timeout(&file.timeout, diagnostics);
    check_retry(&file.retry, diagnostics);
    check_max_output(&file.max_output, diagnostics);
    check_start_limits(&file.max_parallel, &file.rate, diagnostics);
    check_resource_limits(&file.limits, diagnostics);
    check_shared_sandbox(&file.sandbox, diagnostics);
    let sets_nothing = file.concurrency_safe.is_missing()
        && file.effect.is_missing()
        && present_keys(&defaults).next().is_none();
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

/// What a program gets if its own keys don't say otherwise.
#[derive(Debug, Default)]
pub(crate) struct CommandDefaults {
    pub(crate) env: Vec<(String, Template)>,
    pub(crate) pass_env: Vec<String>,
    /// Absolute.
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) wrapper: Option<CommandWrapper>,
}

impl CommandDefaults {
    /// Resolves the keys. Nothing in them can depend on the input of a call.
    pub(crate) fn resolve(
        defaults: &Defaults,
        root: &Path,
        diagnostics: &mut Diagnostics<'_>,
    ) -> Self {
        // Accepts any name, so that a placeholder is reported for what it is.
        let any_input = json!({"type": "object"});
        let no_defaults = Self::default();
        let mut context = ToolContext {
            schema: &any_input,
            why_no_input: None,
            root,
            paths: Vec::new(),
            has_no_paths: false,
            sandbox: None,
            command_defaults: &no_defaults,
            wrapper: None,
            diagnostics,
        };
        Self {
            env: resolve_default_env(&defaults.env, &mut context),
            pass_env: resolve_pass_env(&defaults.pass_env, &mut context),
            cwd: resolve_cwd(&defaults.cwd, &mut context),
            wrapper: resolve_wrapper(&defaults.wrapper, None, &mut context),
        }
    }

    /// Adds the variables that a program doesn't set or pass itself.
    pub(crate) fn add_env(
        &self,
        own: Vec<(String, Template)>,
        own_pass_env: &[String],
    ) -> Vec<(String, Template)> {
        let is_own = |name: &String| {
            own.iter().any(|(known, _)| known == name) || own_pass_env.contains(name)
        };
        let added = self.env.iter().filter(|(name, _)| !is_own(name)).cloned();
        let mut env: Vec<_> = added.collect();
        env.extend(own);
        env
    }

    /// Adds the names of the variables that are passed to every program.
    pub(crate) fn add_pass_env(&self, own: &[String]) -> Vec<String> {
        let added = self.pass_env.iter().filter(|name| !own.contains(name));
        added.chain(own).cloned().collect()
    }
}
