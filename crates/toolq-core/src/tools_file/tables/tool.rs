//! The keys of a tool, and what they mean together, with everything inherited applied.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::tools_file::context::{Diagnostics, ToolContext};
use crate::tools_file::spanned::{Field, SpannedTable};
use crate::tools_file::tables::agent::AgentFile;
use crate::tools_file::tables::calls::{CacheFile, LocksFile, OnceForm};
use crate::tools_file::tables::command::CommandForm;
use crate::tools_file::tables::http::{HttpFile, McpFile};
use crate::tools_file::tables::messages::MessagesFile;
use crate::tools_file::tables::settings::{Layer, Settings};
use crate::tools_file::tables::values::{Argv, DurationText, InputSchema, JsonObject};
use crate::tools_file::tables::when::SafetyForm;
use crate::tools_file::templates::TemplatePolicy;
use crate::types::{Compare, Effect, IgnorePattern, OutputKind, StatusTemplates, TextNormalizer};

/// A tool that a model may call, and what does its work.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("anyOf" = [{"required": ["input_schema"]}, {"required": ["describe"]}, {"required": ["mcp"]}]))]
pub struct ToolFile {
    /// Description for the model: what the tool does and when to use it.
    pub description: Field<String>,
    /// Name shown to people.
    pub display_name: Field<String>,
    /// Group of the tool in the output of `toolq tools --format markdown`.
    pub category: Field<String>,
    /// JSON Schema of the input, whose type must be `object`; or the path of a JSON file that holds one, relative to the file that
    /// names it.
    #[schemars(with = "Field<InputSchema>")]
    pub input_schema: Field<Value>,
    /// Program that prints `{"description": …, "input_schema": …}`: a list of the program and its arguments. It runs
    /// before the first call and replaces `input_schema`.
    pub describe: Field<Argv>,
    /// What the tool does to the world: `read` (nothing), `idempotent` (changes that may be repeated) or `write`
    /// (changes that may not; the default).
    pub effect: Field<Effect>,
    /// Whether calls may run in parallel with other safe calls: `true`, `false`, or a schema of the inputs that may.
    pub concurrency_safe: Field<SafetyForm>,
    /// What calls read and change: `file:PATH`, or any other text. Calls with locks wait only for calls before them that
    /// lock the same, unless both only read. Templates over the input.
    pub locks: Field<LocksFile>,
    /// Whether it may destroy something, for MCP clients. Default: they aren't told, and assume it of any tool that
    /// isn't `read`.
    pub destructive: Field<bool>,
    /// Whether it reaches systems that nobody here controls, such as the web, for MCP clients. Default: they aren't told,
    /// and assume it.
    pub open_world: Field<bool>,
    /// Expected duration of a call, for `toolq plan`.
    pub estimate: Field<DurationText>,
    /// Inputs that are file paths and must stay inside the root.
    pub paths: Field<Vec<Field<String>>>,
    /// Progress text shown while the call waits or runs.
    pub status: Field<StatusFile>,
    /// Program to run: a list of the program and its arguments, or a table.
    pub command: Field<CommandForm>,
    /// What runs the programs of the tool: a program and its arguments before that, such as `[nice, -n, "5"]`. An empty list
    /// turns that of `defaults` off.
    pub wrapper: Field<Argv>,
    /// HTTP request to send.
    pub http: Field<HttpFile>,
    /// Model with tools that works on the input.
    pub agent: Field<AgentFile>,
    /// Tool of a server to call.
    pub mcp: Field<McpFile>,
    /// `host`, for a tool that the host process serves. Not in a file.
    #[schemars(skip)]
    pub backing: Field<String>,
    /// Program that finds out whether an interrupted call did its work when it is asked for again: a list of the program and its
    /// arguments. Exit code 0: it did, and the program's output is the result. 1: it didn't. Any other: unknown.
    pub probe: Field<Argv>,
    /// Whether the model reads a text as it was printed, with colors, cursor movements and overwritten lines. Default: false.
    pub raw: Field<bool>,
    /// The JSON that stands for an empty output, such as `'[]'`. Only with `output: json`. Default: an empty output is an
    /// error.
    pub empty: Field<String>,
    /// JSON Schema of the output. Only with `output: json`. A result that violates it is an error, and an MCP client gets
    /// the result as structured content.
    #[schemars(with = "Field<JsonObject>")]
    pub output_schema: Field<Value>,
    /// For how long the result of a call answers others with the same input. Only for `read` tools. Default: each call runs.
    pub cache: Field<CacheFile>,
    /// Inputs whose values name a call: another one with the same values doesn't run, whatever its id, but gets its result.
    /// Not for `read` tools. Default: the id of a call names it.
    pub once: Field<OnceForm>,
    /// How `toolq replay` compares a result with the recorded one. Default: `json`.
    pub compare: Field<Compare>,
    /// Parts of a result that `toolq replay` ignores: `/pointer`, or `//name` at any depth.
    pub ignore: Field<Vec<Field<String>>>,
    /// What `toolq replay` replaces in texts before it compares them, for parts that change every time.
    pub normalize: Field<Vec<Field<NormalizeFile>>>,
    /// Texts for the model when a call fails. They take precedence over the file's `messages`.
    pub messages: Field<MessagesFile>,
    /// What can also be inherited.
    #[serde(rename = "$settings")]
    #[schemars(flatten)]
    pub settings: Settings,
}

/// Progress texts: templates over the input.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct StatusFile {
    /// Shown while the call waits.
    pub wait: Field<String>,
    /// Shown while the call runs.
    pub doing: Field<String>,
}

/// Defaults for keys that a tool leaves out.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Defaults {
    /// Environment variables of every program: names with templates for their values, without values from the input. A
    /// program's own `env` takes precedence by name. Only in the `defaults` of the file.
    pub env: Field<SpannedTable<String>>,
    /// Variables to pass to every program from toolq's own environment, in addition to its own `pass_env`. Only in the
    /// `defaults` of the file.
    pub pass_env: Field<Vec<Field<String>>>,
    /// Working directory of every program, inside the root. Only in the `defaults` of the file.
    pub cwd: Field<String>,
    /// What runs every program: a program and its arguments before that. Only in the `defaults` of the file.
    pub wrapper: Field<Argv>,
    /// What can also be inherited.
    #[serde(rename = "$settings")]
    #[schemars(flatten)]
    pub settings: Layer,
}

/// A replacement in texts that `toolq replay` compares.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["pattern"]))]
pub struct NormalizeFile {
    /// Regular expression of what is replaced, without look-around.
    pub pattern: Field<String>,
    /// Text to put in its place; `$1` is the first group. Default: nothing.
    pub with: Field<String>,
}

/// Reports a wrapper of a tool that has no program.
pub(crate) fn check_wrapped(tool: &ToolFile, diagnostics: &mut Diagnostics) {
    let has_program =
        !(tool.command.is_missing() && tool.describe.is_missing() && tool.probe.is_missing());
    if let Some(wrapper) = tool.wrapper.spanned().filter(|_| !has_program) {
        diagnostics.error(
            wrapper.key_span,
            "this tool has no program that the wrapper could run",
            "a server has its own: `servers: {NAME: {command: […], wrapper: […]}}`",
        );
    }
}

/// Returns the JSON that replaces an empty output.
pub(crate) fn resolve_empty_output(
    field: &Field<String>,
    output: OutputKind,
    diagnostics: &mut Diagnostics,
) -> Option<String> {
    let empty = field.spanned()?;
    if output != OutputKind::Json {
        diagnostics.error(
            empty.key_span,
            "`empty` is only for `output: json`",
            "an empty text is answered `(no output)`; `messages: {empty_output: TEXT}` words that",
        );
    }
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&empty.value) {
        diagnostics.error(
            empty.span,
            format!("`empty` isn't JSON: {error}"),
            "write the JSON that stands for no output, such as `'[]'` or `'null'`",
        );
    }
    Some(empty.value.clone())
}

pub(crate) fn resolve_status(tool: &ToolFile, context: &mut ToolContext<'_>) -> StatusTemplates {
    let Some(file) = tool.status.value() else {
        return StatusTemplates::default();
    };
    let mut read = |text: &Field<String>| {
        text.spanned()
            .map(|text| context.resolve_template(text, TemplatePolicy::STATUS_TEXT))
    };
    StatusTemplates {
        wait: read(&file.wait),
        doing: read(&file.doing),
    }
}

/// Returns whether the tool is declared to clients as destructive. A tool that changes nothing can't be.
pub(crate) fn resolve_destructive(
    field: &Field<bool>,
    effect: Effect,
    diagnostics: &mut Diagnostics,
) -> Option<bool> {
    let destructive = field.spanned()?;
    if destructive.value && effect == Effect::Read {
        diagnostics.error(
            destructive.span,
            "a tool with `effect: read` changes nothing, so it can't be destructive",
            "remove `destructive`, or write `effect: write`",
        );
    }
    Some(destructive.value)
}

/// Returns the normalizers of a tool or a file, and reports those that are incomplete or not regular expressions.
pub(crate) fn resolve_normalizers(
    normalize: &Field<Vec<Field<NormalizeFile>>>,
    diagnostics: &mut Diagnostics,
) -> Vec<TextNormalizer> {
    let mut normalizers = Vec::new();
    for file in normalize.items() {
        let Some(pattern) = file.value.pattern.spanned() else {
            if file.value.pattern.is_missing() {
                diagnostics.error(
                    file.span,
                    "`pattern` is missing",
                    "write `{pattern: REGEX, with: TEXT}`",
                );
            }
            continue;
        };
        let replacement = file.value.with.value().map_or("", String::as_str);
        match TextNormalizer::new(&pattern.value, replacement) {
            Ok(normalizer) => normalizers.push(normalizer),
            Err(message) => diagnostics.error(
                pattern.span,
                format!("this isn't a regular expression: {message}"),
                "see https://docs.rs/regex/latest/regex/#syntax; single quotes keep backslashes as they are",
            ),
        }
    }
    normalizers
}

/// Returns the parts of a result that `replay` ignores. Only JSON has parts.
pub(crate) fn resolve_ignored(
    ignore: &Field<Vec<Field<String>>>,
    compare: Compare,
    diagnostics: &mut Diagnostics,
) -> Vec<IgnorePattern> {
    let compares_whole = matches!(compare, Compare::Exact | Compare::None);
    let mut parts = Vec::new();
    for part in ignore.items() {
        match IgnorePattern::parse(&part.value) {
            Ok(ignored) => parts.push(ignored),
            Err(message) => diagnostics.error(
                part.span,
                message,
                "`/meta/took_ms` is a path from the top, `//took_ms` a name at any depth",
            ),
        }
        if compares_whole {
            diagnostics.warning(
                (part.span, "has no effect"),
                "`ignore` does nothing for results that are compared as a whole, or not at all",
                "write `compare: json`, or remove `ignore`",
            );
        }
    }
    parts
}

/// Returns what `replay` replaces in the tool's results: its own normalizers, then those of the file.
pub(crate) fn resolve_normalize(
    field: &Field<Vec<Field<NormalizeFile>>>,
    compare: Compare,
    shared: &[TextNormalizer],
    diagnostics: &mut Diagnostics,
) -> Vec<TextNormalizer> {
    let mut own = resolve_normalizers(field, diagnostics);
    if let (Compare::Schema | Compare::None, Some(span)) = (compare, field.key_span()) {
        diagnostics.warning(
            (span, "has no effect"),
            "`normalize` does nothing for results whose texts are not compared",
            "write `compare: json` or `compare: exact`, or remove `normalize`",
        );
    }
    own.extend_from_slice(shared);
    own
}
