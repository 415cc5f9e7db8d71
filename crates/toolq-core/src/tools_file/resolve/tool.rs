//! Resolves one tool into the form that calls are checked against, with the file's defaults applied.

use std::path::Path;

use crate::tools_file::keys::{Defaults, ToolFile};
use crate::tools_file::resolve::attempt_limits;
use crate::tools_file::resolve::attempt_limits::{
    DEFAULT_MAX_OUTPUT_BYTES, DEFAULT_MAX_SAVED_BYTES,
};
use crate::tools_file::resolve::auxiliary_commands;
use crate::tools_file::resolve::backing;
use crate::tools_file::resolve::context::ToolContext;
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::resolve::locks;
use crate::tools_file::resolve::messages;
use crate::tools_file::resolve::placeholders::TemplatePolicy;
use crate::tools_file::resolve::policies;
use crate::tools_file::resolve::replay_settings;
use crate::tools_file::resolve::sandbox;
use crate::tools_file::resolve::server::ServersByName;
use crate::tools_file::resolve::server_tools::ServerTools;
use crate::tools_file::resolve::setting_layers;
use crate::tools_file::resolve::start_limits;
use crate::tools_file::resolve::tool_name::{check_tool_name, check_tool_schema};
use crate::tools_file::resolve::tool_rules::ToolRules;
use crate::tools_file::resolve::value_names;
use crate::tools_file::spanned::{Field, Spanned};
use crate::types::{
    Compare, Effect, MessageTemplates, OnDoubt, OnFailure, OutputKind, StatusTemplates,
    TextNormalizer, Tool, ToolLock,
};

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
        Some(upper) => &setting_layers::layer(upper, shared.defaults),
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
    let backing = backing::resolve_backing(name, file, defaults, shared, context);
    sandbox::report_unused_sandbox(tool, backing.as_ref(), context.diagnostics);
    let output = pick_or(&tool.output, &defaults.output, OutputKind::Text);
    Tool {
        name: name.to_owned(),
        description: resolve_description(tool, lock),
        display_name: tool.display_name.value().cloned(),
        category: tool.category.value().cloned(),
        input_schema: context.schema.clone(),
        awaits_list: false,
        describe: auxiliary_commands::resolve_describe(tool, backing.as_ref(), context),
        safety: policies::resolve_safety(name, tool, shared, locked_effect),
        approve: policies::resolve_approval(first_valid(&tool.approve, &defaults.approve), effect),
        locks: locks::resolve_locks(tool, context),
        start_limits: start_limits::resolve_start_limits(
            pick(&tool.max_parallel, &defaults.max_parallel),
            pick(&tool.rate, &defaults.rate),
        ),
        rule_settings: shared.rules.list_settings(name, tool),
        effect,
        destructive: policies::resolve_destructive(&tool.destructive, effect, context.diagnostics),
        open_world: tool.open_world.value().copied(),
        timeout: attempt_limits::resolve_timeout([&tool.timeout, &defaults.timeout]),
        estimate: tool.estimate.value().map(|estimate| estimate.0),
        paths: context.paths.clone(),
        status: resolve_status(tool, context),
        probe: auxiliary_commands::resolve_probe(tool, effect, backing.as_ref(), context),
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
        cache: policies::resolve_cache(&tool.cache, effect, context.diagnostics),
        once: policies::resolve_once(&tool.once, effect, shared.dir, context),
        retry: attempt_limits::resolve_retry(
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
        ignore: replay_settings::resolve_ignored(tool, context.diagnostics),
        normalize: replay_settings::resolve_normalize(
            tool,
            shared.normalizers,
            context.diagnostics,
        ),
        messages: resolve_tool_messages(tool, shared.messages, context.diagnostics),
    }
}

/// Resolves what the tool's programs depend on (its paths, sandbox and wrapper) into the context.
fn resolve_surroundings(tool: &ToolFile, defaults: &Defaults, context: &mut ToolContext<'_, '_>) {
    context.paths = value_names::resolve_value_names(
        tool.paths.items(),
        "only inputs in the schema can be kept inside the root",
        context,
    );
    context.has_no_paths = !tool.paths.is_missing() && context.paths.is_empty();
    sandbox::check_sandbox(&tool.sandbox, context);
    context.sandbox =
        sandbox::resolve_sandbox(&setting_layers::layer_sandbox(&tool.sandbox, defaults));
    context.set_wrapper(&tool.wrapper);
    check_wrapped(tool, context.diagnostics);
}

/// Returns the file's messages with those of the tool above them.
fn resolve_tool_messages(
    tool: &ToolFile,
    shared: &MessageTemplates,
    diagnostics: &mut Diagnostics<'_>,
) -> MessageTemplates {
    messages::refuse_builtin_wording(&tool.messages, diagnostics);
    let mut templates = shared.clone();
    templates.extend(messages::resolve_messages(&tool.messages, diagnostics));
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
    attempt_limits::check_timeout(&tool.timeout, context.diagnostics);
    attempt_limits::check_retry(&tool.retry, context.diagnostics);
    attempt_limits::check_max_output(&tool.max_output, context.diagnostics);
    start_limits::check_start_limits(&tool.max_parallel, &tool.rate, context.diagnostics);
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
