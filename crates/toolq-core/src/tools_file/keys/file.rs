//! The top-level keys of tools.yaml.
//!
//! Every key is optional here, nothing is resolved, and each value has its span. The doc comments become the
//! descriptions in tools.schema.json. A `serde(rename)` that begins with `$` is a marker for the deserializer in
//! `spanned`; the names in the file are the field names.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::Value;

use crate::tools_file::keys::approve::ApproveForm;
use crate::tools_file::keys::attempts::{RetryFile, TimeoutForm};
use crate::tools_file::keys::backing::{LimitsFile, ServerFile};
use crate::tools_file::keys::messages::MessagesFile;
use crate::tools_file::keys::sandbox::SandboxForm;
use crate::tools_file::keys::start_limits::{HostFile, RateForm};
use crate::tools_file::keys::tool::{Defaults, NormalizeFile, ToolFile};
use crate::tools_file::keys::values::{PriceNumber, SizeText};
use crate::tools_file::spanned::{Field, SpannedTable, deserialize_node};
use crate::tools_file::yaml::YamlNode;
use crate::types::{Effect, FileProblem, FormatPolicy, Leftovers, OnDoubt, OnFailure, OutputKind};

/// Tools that a model may call, and how toolq runs them.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(title = "tools.yaml", deny_unknown_fields, extend("anyOf" = [{"required": ["tools"]}, {"required": ["servers"]}, {"required": ["include"]}, {"required": ["rules"]}]))]
pub struct ToolsFile {
    /// Version of this format: 1.
    #[schemars(range(min = 1, max = 1))]
    pub version: Field<u32>,
    /// Files with more `tools`, `rules` and `servers`, in the directory of this file or below it.
    pub include: Field<Vec<Field<String>>>,
    /// Maximum number of calls that run at once, in total. 1 turns parallelism off. Default: 10.
    #[schemars(range(min = 1, max = 10_000))]
    pub concurrency: Field<u32>,
    /// Directory where commands run and that inputs named in `paths` can't leave, relative to the current directory.
    /// Default: the current directory.
    pub root: Field<String>,
    /// Environment variables whose values are masked in all output.
    pub secrets: Field<Vec<Field<String>>>,
    /// File with lines `NAME=value`, relative to this file, for `${NAME}` and `pass_env`. The environment takes precedence.
    /// All values are masked.
    pub env_file: Field<String>,
    /// Built-in tools to enable: `attempt_completion`, `new_task` and `read_output`. A tool of the same name in this file
    /// takes precedence.
    #[schemars(with = "Field<Vec<BuiltinName>>")]
    pub builtins: Field<Vec<Field<String>>>,
    /// Defaults for keys that a tool leaves out.
    pub defaults: Field<Defaults>,
    /// Settings by tool name, such as concurrency safety. They apply to keys that a tool leaves out, before `defaults`; for
    /// each key, the first matching rule counts.
    pub rules: Field<Vec<Field<RuleFile>>>,
    /// Texts for the model when a call fails.
    pub messages: Field<MessagesFile>,
    /// Whether `format` in an `input_schema` is checked: `annotate` (it isn't) or `assert`. Default: `annotate`.
    pub formats: Field<FormatPolicy>,
    /// What `toolq replay` replaces in all texts before it compares them, after what a tool's own `normalize` does.
    pub normalize: Field<Vec<Field<NormalizeFile>>>,
    /// Programs that serve tools by the Model Context Protocol (MCP), by name.
    pub servers: Field<SpannedTable<ServerFile>>,
    /// Limits on the requests of `http` tools, by host: `api.example.com`, or `*.example.com` for all of its subdomains
    /// together.
    pub hosts: Field<SpannedTable<HostFile>>,
    /// Token prices by model name, in US dollars per million tokens.
    pub prices: Field<SpannedTable<PriceFile>>,
    /// The tools, by name.
    pub tools: Field<SpannedTable<ToolFile>>,
}

/// What a file that another one includes may have. Editors use the schema of [`ToolsFile`] for it, too.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct IncludedFile {
    pub version: Field<u32>,
    pub rules: Field<Vec<Field<RuleFile>>>,
    pub servers: Field<SpannedTable<ServerFile>>,
    pub tools: Field<SpannedTable<ToolFile>>,
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

/// Token prices of one model, in US dollars per million tokens.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["input", "output"]))]
pub struct PriceFile {
    /// Price of input tokens.
    #[schemars(range(min = 0))]
    pub input: Field<PriceNumber>,
    /// Price of output tokens.
    #[schemars(range(min = 0))]
    pub output: Field<PriceNumber>,
    /// Price of tokens read from a cache. Without it, the cost of responses with such tokens is unknown.
    #[schemars(range(min = 0))]
    pub cache_read: Field<PriceNumber>,
    /// Price of tokens written to a cache. Without it, the cost of responses with such tokens is unknown.
    #[schemars(range(min = 0))]
    pub cache_write: Field<PriceNumber>,
}

/// Names of the built-in tools, for tools.schema.json.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case", inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum BuiltinName {
    AttemptCompletion,
    NewTask,
    ReadOutput,
}

impl ToolsFile {
    /// Deserializes the whole file, and returns every problem with its structure.
    pub fn read(tree: &YamlNode) -> (Field<Self>, Vec<FileProblem>) {
        let (file, mut problems) = deserialize_node(tree, "tools.yaml", find_key_hint);
        if file.spanned().is_none() {
            for problem in &mut problems {
                let hint = || "`toolq init` writes an example".to_owned();
                problem.hint.get_or_insert_with(hint);
            }
        }
        (file, problems)
    }
}

impl IncludedFile {
    /// Deserializes the file `name`, and returns every problem with its structure.
    pub fn read(tree: &YamlNode, name: &str) -> (Field<Self>, Vec<FileProblem>) {
        deserialize_node(tree, name, find_included_key_hint)
    }

    /// Returns whether the file declares nothing apart from the version.
    pub fn declares_nothing(&self) -> bool {
        self.rules.is_missing() && self.servers.is_missing() && self.tools.is_missing()
    }
}

/// Returns the JSON Schema (2020-12) of tools.yaml, for editors.
pub fn generate_tools_schema() -> Value {
    let settings = SchemaSettings::draft2020_12();
    settings
        .into_generator()
        .into_root_schema_for::<ToolsFile>()
        .to_value()
}

// Hints for keys from other formats, and for keys in the wrong table.

/// Returns a hint for the unknown `key` of a table with these `fields`, if it is a common mistake.
fn find_key_hint(key: &str, fields: &[&str]) -> Option<&'static str> {
    let is_tool_table = fields.contains(&"input_schema");
    let has_policy = fields.contains(&"on_failure");
    let hint = match key {
        "secret" | "secrets" if is_tool_table => {
            "it is a top-level key: `secrets: [NAME]`, next to `tools`"
        }
        "root" | "rules" | "version" if is_tool_table => {
            "it is a top-level key: write it next to `tools`"
        }
        "parameters" | "inputSchema" | "schema" | "input" | "args" if is_tool_table => {
            "did you mean `input_schema`?"
        }
        "argv" | "env" | "stdin" | "stderr" | "cwd" | "pass_env" | "success_exit"
            if is_tool_table =>
        {
            "it is a key of `command`: `command: {argv: [cat, --, \"{path}\"], env: {NAME: value}}`"
        }
        "url" | "method" | "query" | "headers" | "body" | "form" | "select" if is_tool_table => {
            "it is a key of `http`: `http: {url: \"https://…\"}`"
        }
        "cmd" | "run" | "exec" | "shell" | "script" if is_tool_table => {
            "did you mean `command`? It is a list: `command: [sh, -c, 'wc -w -- \"$1\"', --, \"{path}\"]`"
        }
        "model" | "system" | "endpoint" | "max_turns" | "max_tokens" if is_tool_table => {
            "it is a key of `agent`: `agent: {endpoint: \"https://…\", model: …}`"
        }
        "name" if is_tool_table => "the name of a tool is its key in `tools`",
        "backend" | "handler" | "function" | "type" if is_tool_table => {
            "what does the work is one of `command`, `http`, `agent` and `mcp`"
        }
        "read_only" | "readonly" | "annotations" | "side_effects" | "idempotent"
            if is_tool_table =>
        {
            "did you mean `effect`? It is `read`, `idempotent` or `write`"
        }
        "parallel" | "concurrent" | "parallel_safe" if is_tool_table => {
            "did you mean `concurrency_safe`? Calls with `effect: read` run in parallel without it"
        }
        "retries" | "max_retries" | "attempts" if has_policy => {
            "did you mean `retry`? For example `retry: {times: 3, on: [unavailable, timeout]}`"
        }
        "timeout_seconds" | "timeout_secs" | "timeout_ms" if has_policy => {
            "did you mean `timeout`? It has a unit: `timeout: 30s`"
        }
        "requires_approval" | "require_approval" | "needs_approval" | "approval" | "confirm"
            if has_policy =>
        {
            "did you mean `approve`? For example `approve: true`"
        }
        _ => return None,
    };
    Some(hint)
}

/// Like [`find_key_hint`], for a file that another one includes.
fn find_included_key_hint(key: &str, fields: &[&str]) -> Option<&'static str> {
    let is_top_level = fields.contains(&"servers");
    match key {
        "include" if is_top_level => Some(
            "an included file doesn't include others: name them all in the file that includes this one",
        ),
        "concurrency" | "root" | "secrets" | "builtins" | "defaults" | "messages" | "formats"
        | "normalize" | "prices" | "env_file"
            if is_top_level =>
        {
            Some("write it in the file that includes this one, which has it for all tools")
        }
        _ => find_key_hint(key, fields),
    }
}
