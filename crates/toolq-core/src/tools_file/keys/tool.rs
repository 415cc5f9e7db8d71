//! One tool, and what tools have in common.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::tools_file::keys::agent::AgentFile;
use crate::tools_file::keys::backing::{Argv, CommandForm, HttpFile, LimitsFile};
use crate::tools_file::keys::values::{Bytes, DurationText, RetryOnText};
use crate::tools_file::spanned::Setting;
use crate::types::{Compare, Effect, Leftovers, OnFailure, OutputKind};

/// A tool: what a model may call, and what does the work.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("anyOf" = [{"required": ["input_schema"]}, {"required": ["describe"]}]))]
pub struct ToolFile {
    /// For the model: what the tool does and when to use it.
    pub description: Setting<String>,
    /// For people.
    pub display_name: Setting<String>,
    /// Groups tools in the output of `toolq tools --format markdown`.
    pub category: Setting<String>,
    /// JSON Schema of the input; its type is object.
    #[schemars(with = "Setting<JsonObject>")]
    pub input_schema: Setting<Value>,
    /// A program that prints `{"description": …, "input_schema": …}`: a list of it and its arguments. It runs before the
    /// first call, and takes the place of `input_schema`.
    pub describe: Setting<Argv>,
    /// What the tool does to the world: `read` looks only, `idempotent` may be repeated, `write` (the default) may not.
    pub effect: Setting<Effect>,
    /// Whether a call may run beside other safe calls; by input where a schema says when.
    pub concurrency_safe: Setting<SafetyForm>,
    /// How long one attempt may take, or a table of limits. Default: 30s.
    pub timeout: Setting<TimeoutForm>,
    /// How long a call is expected to take, for `toolq plan`.
    pub estimate: Setting<DurationText>,
    /// Inputs that are paths and must stay inside the root.
    pub paths: Setting<Vec<Setting<String>>>,
    /// What people see meanwhile.
    pub status: Setting<StatusFile>,
    /// Runs a program: a list of it and its arguments, or a table.
    pub command: Setting<CommandForm>,
    /// Sends a request.
    pub http: Setting<HttpFile>,
    /// Lets a model with tools work on it.
    pub agent: Setting<AgentFile>,
    /// A program that `run --resume` asks whether a call that was interrupted did its work: a list of it and its
    /// arguments. Exit 0: it did, and the program's output is the result; 1: it did not; else nobody knows.
    pub probe: Setting<Argv>,
    /// What the output is: `text` (the default), `json`, or `content` blocks.
    pub output: Setting<OutputKind>,
    /// How much of the output reaches the model. Default: 64KiB.
    pub max_output: Setting<Bytes>,
    /// How much of a cut output is kept beside the session log. Default: 64MiB.
    pub max_saved: Setting<Bytes>,
    /// When an attempt is followed by another. Default: once, when rate limited.
    pub retry: Setting<RetryFile>,
    /// What a failure does to the other calls of its turn. Default: `continue`.
    pub on_failure: Setting<OnFailure>,
    /// After so many failures in a row the tool's calls are answered "paused". Default: 0, never; 3 where an agent
    /// calls.
    pub pause_after_failures: Setting<u32>,
    /// Whether inputs that fail only by scalar types (`"3"` for 3) are converted. Default: true.
    pub coerce: Setting<bool>,
    /// How `toolq replay` compares results with recorded ones. Default: `json`.
    pub compare: Setting<Compare>,
    /// Parts of a result that `toolq replay` leaves out: `/pointer`, or `//name` at any depth.
    pub ignore: Setting<Vec<Setting<String>>>,
    /// The texts that a model reads, before those of the file.
    pub messages: Setting<MessagesFile>,
}

/// What tools may leave out.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Defaults {
    /// How long one attempt may take, or a table of limits.
    pub timeout: Setting<TimeoutForm>,
    /// What the output is.
    pub output: Setting<OutputKind>,
    /// How much of the output reaches the model.
    pub max_output: Setting<Bytes>,
    /// How much of a cut output is kept beside the session log.
    pub max_saved: Setting<Bytes>,
    /// When an attempt is followed by another. A `write` tool takes of it only what surely did not run.
    pub retry: Setting<RetryFile>,
    /// What a failure does to the other calls of its turn.
    pub on_failure: Setting<OnFailure>,
    /// After so many failures in a row a tool's calls are answered "paused".
    pub pause_after_failures: Setting<u32>,
    /// Whether inputs that fail only by scalar types are converted.
    pub coerce: Setting<bool>,
    /// What happens to processes that a command leaves running when it ends.
    pub leftovers: Setting<Leftovers>,
    /// What a command may use.
    pub limits: Setting<LimitsFile>,
}

/// An object of JSON, for the schema of this file.
#[derive(JsonSchema)]
#[schemars(transparent, inline)]
#[expect(dead_code, reason = "only its schema is used")]
struct JsonObject(serde_json::Map<String, Value>);

/// Whether a call may run beside others.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    rename = "$kind",
    rename_all = "snake_case",
    expecting = "`true`, `false` or `{when: SCHEMA}`"
)]
#[schemars(rename = "Safety", untagged)]
pub enum SafetyForm {
    /// Always, or never.
    Boolean(bool),
    /// By input.
    Table(SafetyTable),
}

/// Safety by input.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["when"]))]
pub struct SafetyTable {
    /// JSON Schema: a call whose input matches may run beside others.
    #[schemars(with = "Setting<JsonObject>")]
    pub when: Setting<Value>,
}

/// Limits in time.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    rename = "$kind",
    rename_all = "snake_case",
    expecting = "a duration with its unit such as `30s`, or a table such as `{after: 30s, total: 2m}`"
)]
#[schemars(rename = "Timeout", untagged)]
pub enum TimeoutForm {
    // A number is read as one too, to be told that its unit is missing.
    /// Of one attempt.
    #[serde(alias = "number")]
    Text(DurationText),
    /// Each by its name.
    Table(TimeoutTable),
}

/// Limits in time, each by its name.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct TimeoutTable {
    /// Of one attempt. Default: 30s.
    pub after: Setting<DurationText>,
    /// Between asking a process to end and killing it. Default: 2s.
    pub grace: Setting<DurationText>,
    /// After this much, people are told that it takes long.
    pub slow: Setting<DurationText>,
    /// Of all attempts together with the waits between them.
    pub total: Setting<DurationText>,
}

/// What people see meanwhile: templates over the input.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct StatusFile {
    /// While a call waits.
    pub wait: Setting<String>,
    /// While it runs.
    pub doing: Setting<String>,
}

/// When an attempt is followed by another.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct RetryFile {
    /// Attempts beyond the first. Default: 1.
    #[schemars(range(max = 100))]
    pub times: Setting<u32>,
    /// What is retried. Default: only `rate_limited`, which is also all that a `write` tool may have.
    pub on: Setting<Vec<Setting<RetryOnText>>>,
    /// Before the first repetition; doubled for each further one. Default: 1s.
    pub backoff: Setting<DurationText>,
    /// The longest wait. Default: 30s.
    pub max_backoff: Setting<DurationText>,
}

/// Texts with `{tool}`, `{error}`, `{timeout}` and `{details}`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct MessagesFile {
    /// The time was over.
    pub timeout: Setting<String>,
    /// The tool failed.
    pub failed: Setting<String>,
    /// The program could not be started, or nobody answered.
    pub unavailable: Setting<String>,
    /// There were too many requests.
    pub rate_limited: Setting<String>,
    /// The input breaks the schema.
    pub invalid_input: Setting<String>,
    /// There is no such tool.
    pub unknown_tool: Setting<String>,
    /// An agent came to no answer.
    pub agent_failed: Setting<String>,
    /// The tool failed too often in a row.
    pub paused: Setting<String>,
    /// A call before it failed.
    pub not_executed: Setting<String>,
    /// The run was interrupted.
    pub interrupted: Setting<String>,
    /// A call of a tool that writes may have had its effect, and nobody knows.
    pub in_doubt: Setting<String>,
}
