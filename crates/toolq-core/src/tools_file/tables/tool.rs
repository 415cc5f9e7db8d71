//! The keys of a tool, and what they mean together, with everything inherited applied.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::tools_file::sources::Diagnostics;
use crate::tools_file::spanned::{Field, Spanned};
use crate::tools_file::tables::agent::{AgentFile, resolve_agent};
use crate::tools_file::tables::calls::{
    CacheFile, LocksFile, OnceForm, RateForm, check_start_limits, resolve_cache, resolve_locks,
    resolve_once, resolve_start_limits,
};
use crate::tools_file::tables::command::{
    Argv, CommandForm, resolve_command, resolve_describe, resolve_probe,
};
use crate::tools_file::tables::http::{HttpFile, resolve_http};
use crate::tools_file::tables::limits::{
    DEFAULT_MAX_OUTPUT_BYTES, DEFAULT_MAX_SAVED_BYTES, RetryFile, TimeoutForm, check_max_output,
    check_retry, check_timeout, resolve_retry, resolve_timeout,
};
use crate::tools_file::tables::messages::{
    MessagesFile, refuse_builtin_wording, resolve_messages, tool_messages_schema,
};
use crate::tools_file::tables::replay::{NormalizeFile, resolve_ignored, resolve_normalize};
use crate::tools_file::tables::sandbox::{
    SandboxForm, check_sandbox, report_unused_sandbox, resolve_sandbox,
};
use crate::tools_file::tables::schemas::{
    InputSchema, JsonObject, check_tool_name, check_tool_schema,
};
use crate::tools_file::tables::server::{McpFile, ServersByName, resolve_mcp};
use crate::tools_file::tables::server_tools::ServerTools;
use crate::tools_file::tables::settings::{Defaults, ToolRules, layer, layer_sandbox};
use crate::tools_file::tables::values::{DurationText, SizeText};
use crate::tools_file::tables::when::{ApproveForm, SafetyForm, resolve_approval, resolve_safety};
use crate::tools_file::templates::{TemplatePolicy, ToolContext, resolve_value_names};
use crate::types::{
    Backing, Compare, Effect, MessageTemplates, OnDoubt, OnFailure, OutputKind, Span,
    StatusTemplates, TextNormalizer, Tool, ToolLock,
};

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
    /// Whether calls start only after they are approved: `true`, `false`, `writes` (if the tool isn't `read`), or a schema
    /// of the inputs that need it. Default: false.
    pub approve: Field<ApproveForm>,
    /// What calls read and change: `file:PATH`, or any other text. Calls with locks wait only for calls before them that
    /// lock the same, unless both only read. Templates over the input.
    pub locks: Field<LocksFile>,
    /// Maximum number of calls of the tool that run at once. Default: as many as `concurrency` lets run.
    #[schemars(range(min = 1))]
    pub max_parallel: Field<u32>,
    /// How often its calls and their retries start: `10/s`, `600/m`, `100/h`, or `{per: 10/s, burst: 20}`. Default: no limit.
    pub rate: Field<RateForm>,
    /// Whether it may destroy something, for MCP clients. Default: they aren't told, and assume it of any tool that
    /// isn't `read`.
    pub destructive: Field<bool>,
    /// Whether it reaches systems that nobody here controls, such as the web, for MCP clients. Default: they aren't told,
    /// and assume it.
    pub open_world: Field<bool>,
    /// Time limit of one attempt, or a table of time limits. Default: 30s.
    pub timeout: Field<TimeoutForm>,
    /// Expected duration of a call, for `toolq plan`.
    pub estimate: Field<DurationText>,
    /// Inputs that are file paths and must stay inside the root.
    pub paths: Field<Vec<Field<String>>>,
    /// Progress text shown while the call waits or runs.
    pub status: Field<StatusFile>,
    /// What the programs of the tool can reach. Default: what the user who runs toolq can.
    pub sandbox: Field<SandboxForm>,
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
    /// Format of the output: `text` (the default), `json`, or `content` blocks.
    pub output: Field<OutputKind>,
    /// Whether the model reads a text as it was printed, with colors, cursor movements and overwritten lines. Default: false.
    pub raw: Field<bool>,
    /// The JSON that stands for an empty output, such as `'[]'`. Only with `output: json`. Default: an empty output is an
    /// error.
    pub empty: Field<String>,
    /// JSON Schema of the output. Only with `output: json`. A result that violates it is an error, and an MCP client gets
    /// the result as structured content.
    #[schemars(with = "Field<JsonObject>")]
    pub output_schema: Field<Value>,
    /// Maximum size of the output that reaches the model. Default: 64KiB.
    pub max_output: Field<SizeText>,
    /// Maximum size of a truncated output that is saved next to the session log. Default: 64MiB.
    pub max_saved: Field<SizeText>,
    /// For how long the result of a call answers others with the same input. Only for `read` tools. Default: each call runs.
    pub cache: Field<CacheFile>,
    /// Inputs whose values name a call: another one with the same values doesn't run, whatever its id, but gets its result.
    /// Not for `read` tools. Default: the id of a call names it.
    pub once: Field<OnceForm>,
    /// When to retry a failed attempt or, for an agent, a failed API request. Default: once, when rate limited.
    pub retry: Field<RetryFile>,
    /// What a failure does to the other calls of its turn. Default: `continue`.
    pub on_failure: Field<OnFailure>,
    /// What a call in doubt does to the later calls of its turn: `stop` (they don't run until it is resolved) or
    /// `continue`. Default: `stop`.
    pub on_doubt: Field<OnDoubt>,
    /// Number of consecutive failures after which calls of the tool are answered "paused". Default: 0 (never); 3 for
    /// calls that an agent makes.
    pub pause_after_failures: Field<u32>,
    /// Whether to convert inputs that are invalid only because of scalar types (`"3"` for 3). Default: true.
    pub coerce: Field<bool>,
    /// How `toolq replay` compares a result with the recorded one. Default: `json`.
    pub compare: Field<Compare>,
    /// Parts of a result that `toolq replay` ignores: `/pointer`, or `//name` at any depth.
    pub ignore: Field<Vec<Field<String>>>,
    /// What `toolq replay` replaces in texts before it compares them, for parts that change every time.
    pub normalize: Field<Vec<Field<NormalizeFile>>>,
    /// Texts for the model when a call fails. They take precedence over the file's `messages`.
    #[schemars(schema_with = "tool_messages_schema")]
    pub messages: Field<MessagesFile>,
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

/// What all tools of a file share.
pub(crate) struct SharedSettings<'f> {
    /// The folder of tools.yaml.
    pub(crate) dir: &'f Path,
    pub(crate) defaults: &'f Defaults,
    pub(crate) rules: &'f ToolRules<'f>,
    pub(crate) normalizers: &'f [TextNormalizer],
    pub(crate) messages: &'f MessageTemplates,
    pub(crate) servers: &'f ServersByName,
    pub(crate) server_tools: &'f ServerTools<'f>,
}

/// Resolves the tool `name`. Problems are added to the diagnostics; if one of them is an error, the tool must not be
/// used.
pub(crate) fn resolve_tool(
    name: &str,
    file: &Spanned<ToolFile>,
    shared: &SharedSettings<'_>,
    context: &mut ToolContext<'_, '_>,
) -> Tool {
    check_tool_name(name, file.key_span, context);
    check_tool_schema(name, context.schema, file.key_span, context);
    let tool = &file.value;
    let server_tools = shared.server_tools;
    let defaults = match server_tools.defaults(&tool.mcp) {
        Some(upper) => &layer(upper, shared.defaults),
        None => shared.defaults,
    };
    let defaults = &shared.rules.layer_defaults(name, defaults);
    check_attempt_limits(tool, context);
    let declared_effect = tool.effect.value().copied();
    let lock = server_tools.tool_lock(name, &tool.mcp);
    let locked_effect = server_tools.effect(name, &tool.mcp);
    let effect = declared_effect
        .or_else(|| shared.rules.effect(name))
        .or(locked_effect)
        .unwrap_or(Effect::Write);
    resolve_surroundings(tool, defaults, context);
    let backing = resolve_backing(name, file, defaults, shared, context);
    report_unused_sandbox(tool, backing.as_ref(), context.diagnostics);
    let output = pick_or(&tool.output, &defaults.output, OutputKind::Text);
    Tool {
        name: name.to_owned(),
        description: resolve_description(tool, lock),
        display_name: tool.display_name.value().cloned(),
        category: tool.category.value().cloned(),
        input_schema: context.schema.clone(),
        awaits_list: false,
        describe: resolve_describe(tool, backing.as_ref(), context),
        safety: resolve_safety(name, tool, shared, locked_effect),
        approve: resolve_approval(first_valid(&tool.approve, &defaults.approve), effect),
        locks: resolve_locks(tool, context),
        start_limits: resolve_start_limits(
            pick(&tool.max_parallel, &defaults.max_parallel),
            pick(&tool.rate, &defaults.rate),
        ),
        rule_settings: shared.rules.list_settings(name, tool),
        effect,
        destructive: resolve_destructive(&tool.destructive, effect, context.diagnostics),
        open_world: tool.open_world.value().copied(),
        timeout: resolve_timeout([&tool.timeout, &defaults.timeout]),
        estimate: tool.estimate.value().map(|estimate| estimate.0),
        paths: context.paths.clone(),
        status: resolve_status(tool, context),
        probe: resolve_probe(tool, effect, backing.as_ref(), context),
        backing,
        output,
        raw_output: tool.raw.value().copied().unwrap_or_default(),
        empty_output: resolve_empty_output(&tool.empty, output, context.diagnostics),
        // Resolved by `resolve_output_schema`.
        output_schema: None,
        max_output: first_valid(&tool.max_output, &defaults.max_output)
            .map_or(DEFAULT_MAX_OUTPUT_BYTES, |size| size.0),
        max_saved: first_valid(&tool.max_saved, &defaults.max_saved)
            .map_or(DEFAULT_MAX_SAVED_BYTES, |size| size.0),
        cache: resolve_cache(&tool.cache, effect, context.diagnostics),
        once: resolve_once(&tool.once, effect, shared.dir, context),
        retry: resolve_retry(
            &tool.retry,
            &defaults.retry,
            tool.agent.is_missing().then_some(effect),
            context.diagnostics,
        ),
        on_failure: pick_or(&tool.on_failure, &defaults.on_failure, OnFailure::Continue),
        on_doubt: pick_or(&tool.on_doubt, &defaults.on_doubt, OnDoubt::default()),
        pause_after_failures: first_valid(
            &tool.pause_after_failures,
            &defaults.pause_after_failures,
        )
        .copied(),
        coerce: pick_or(&tool.coerce, &defaults.coerce, true),
        compare: tool.compare.value().copied().unwrap_or(Compare::Json),
        ignore: resolve_ignored(tool, context.diagnostics),
        normalize: resolve_normalize(tool, shared.normalizers, context.diagnostics),
        messages: resolve_tool_messages(tool, shared.messages, context.diagnostics),
    }
}

/// Resolves what the tool's programs depend on (its paths, sandbox and wrapper) into the context.
fn resolve_surroundings(tool: &ToolFile, defaults: &Defaults, context: &mut ToolContext<'_, '_>) {
    context.paths = resolve_value_names(
        tool.paths.items(),
        "only inputs in the schema can be kept inside the root",
        context,
    );
    context.has_no_paths = !tool.paths.is_missing() && context.paths.is_empty();
    check_sandbox(&tool.sandbox, context);
    context.sandbox = resolve_sandbox(&layer_sandbox(&tool.sandbox, defaults));
    context.set_wrapper(&tool.wrapper);
    check_wrapped(tool, context.diagnostics);
}

/// Returns the file's messages with those of the tool above them.
fn resolve_tool_messages(
    tool: &ToolFile,
    shared: &MessageTemplates,
    diagnostics: &mut Diagnostics<'_>,
) -> MessageTemplates {
    refuse_builtin_wording(&tool.messages, diagnostics);
    let mut templates = shared.clone();
    templates.extend(resolve_messages(&tool.messages, diagnostics));
    templates
}

/// Reports a wrapper of a tool that has no program.
fn check_wrapped(tool: &ToolFile, diagnostics: &mut Diagnostics<'_>) {
    let has_program =
        !(tool.command.is_missing() && tool.describe.is_missing() && tool.probe.is_missing());
    if let Some(wrapper) = tool.wrapper.spanned().filter(|_| !has_program) {
        diagnostics.error(
            wrapper.key_span,
            "this tool has no program that the wrapper could run",
            "",
            "a server has its own: `servers: {NAME: {command: […], wrapper: […]}}`",
        );
    }
}

/// Returns the tool's own description, or the one that its server had when it was locked.
fn resolve_description(tool: &ToolFile, lock: Option<&ToolLock>) -> String {
    let own = tool.description.value();
    own.or(lock.and_then(|lock| lock.definition.description.as_ref()))
        .cloned()
        .unwrap_or_default()
}

/// Returns the tool's own field, or the default if the tool doesn't have it.
fn pick<'s, T>(own: &'s Field<T>, default: &'s Field<T>) -> &'s Field<T> {
    if own.value().is_some() { own } else { default }
}

fn first_valid<'s, T>(own: &'s Field<T>, default: &'s Field<T>) -> Option<&'s T> {
    own.value().or(default.value())
}

fn pick_or<T: Copy>(own: &Field<T>, default: &Field<T>, otherwise: T) -> T {
    first_valid(own, default).copied().unwrap_or(otherwise)
}

fn check_attempt_limits(tool: &ToolFile, context: &mut ToolContext<'_, '_>) {
    check_timeout(&tool.timeout, context.diagnostics);
    check_retry(&tool.retry, context.diagnostics);
    check_max_output(&tool.max_output, context.diagnostics);
    check_start_limits(&tool.max_parallel, &tool.rate, context.diagnostics);
}

/// Returns the JSON that replaces an empty output.
fn resolve_empty_output(
    field: &Field<String>,
    output: OutputKind,
    diagnostics: &mut Diagnostics<'_>,
) -> Option<String> {
    let empty = field.spanned()?;
    if output != OutputKind::Json {
        diagnostics.error(
            empty.key_span,
            "`empty` is only for `output: json`",
            "",
            "an empty text is answered `(no output)`; `messages: {empty_output: TEXT}` words that",
        );
    }
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&empty.value) {
        diagnostics.error(
            empty.span,
            format!("`empty` isn't JSON: {error}"),
            "",
            "write the JSON that stands for no output, such as `'[]'` or `'null'`",
        );
    }
    Some(empty.value.clone())
}

fn resolve_status(tool: &ToolFile, context: &mut ToolContext<'_, '_>) -> StatusTemplates {
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
    diagnostics: &mut Diagnostics<'_>,
) -> Option<bool> {
    let destructive = field.spanned()?;
    if destructive.value && effect == Effect::Read {
        diagnostics.error(
            destructive.span,
            "a tool with `effect: read` changes nothing, so it can't be destructive",
            "",
            "remove `destructive`, or write `effect: write`",
        );
    }
    Some(destructive.value)
}

/// Returns what runs the calls of the tool `name`, or `None` if its declaration has an error.
pub(crate) fn resolve_backing(
    name: &str,
    file: &Spanned<ToolFile>,
    defaults: &Defaults,
    shared: &SharedSettings<'_>,
    context: &mut ToolContext<'_, '_>,
) -> Option<Backing> {
    let tool = &file.value;
    let mut given: Vec<Span> = [
        tool.command.spanned().map(|command| command.key_span),
        tool.http.spanned().map(|http| http.key_span),
        tool.agent.spanned().map(|agent| agent.key_span),
        tool.mcp.spanned().map(|mcp| mcp.key_span),
    ]
    .into_iter()
    .flatten()
    .collect();
    let is_host_tool = check_backing_key(name, file, context.diagnostics);
    given.extend(
        tool.backing
            .spanned()
            .filter(|_| is_host_tool)
            .map(|key| key.key_span),
    );
    given.sort_unstable();
    for second in given.into_iter().skip(1) {
        context.diagnostics.error(
            second,
            "a tool can only have one backing",
            "the second one",
            "keep one of `command`, `http`, `agent` and `mcp`, or declare two tools",
        );
    }
    let command = tool
        .command
        .spanned()
        .and_then(|form| resolve_command(form, defaults, context));
    let http = tool
        .http
        .spanned()
        .and_then(|file| resolve_http(file, context));
    let agent = tool
        .agent
        .spanned()
        .and_then(|file| resolve_agent(file, context));
    let mcp = tool
        .mcp
        .spanned()
        .and_then(|file| resolve_mcp(name, file, shared, context));
    command
        .map(Backing::Command)
        .or(http.map(Backing::Http))
        .or(agent.map(|agent| Backing::Agent(Box::new(agent))))
        .or(mcp.map(Backing::Mcp))
        .or(is_host_tool.then_some(Backing::Host))
}

/// Returns whether the host process serves the tool. Only tools that it announces itself can say so, and each of them has to.
fn check_backing_key(
    name: &str,
    file: &Spanned<ToolFile>,
    diagnostics: &mut Diagnostics<'_>,
) -> bool {
    let is_announced = diagnostics.sources().is_from_host(file.key_span);
    let given = file.value.backing.spanned();
    match given {
        Some(backing) if is_announced && backing.value == "host" => return true,
        Some(backing) if is_announced => diagnostics.error(
            backing.span,
            format!("`{name}` can't have this backing: it isn't `host`"),
            "",
            "write `\"backing\": \"host\"`; tools with another backing are declared in tools.yaml",
        ),
        Some(backing) => diagnostics.error(
            backing.key_span,
            "`backing` is only for the tools that a host process announces",
            "",
            "write what runs the tool: `command`, `http`, `agent` or `mcp`; a host process announces its own tools in the \
             `tools` line of `toolq run --follow --control`",
        ),
        None if is_announced => diagnostics.error(
            file.key_span,
            format!("`{name}` has no backing"),
            "",
            "add `\"backing\": \"host\"`",
        ),
        None => {}
    }
    false
}
