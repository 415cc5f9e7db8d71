//! Resolves the tools of a file, with what they inherit and share.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::tools_file::context::{CheckContext, Diagnostics, ProgramDefaults, ToolContext};
use crate::tools_file::input_values::resolve_value_names;
use crate::tools_file::spanned::{Field, Spanned, SpannedTable};
use crate::tools_file::tables::agent::resolve_agent;
use crate::tools_file::tables::arguments::resolve_wrapper;
use crate::tools_file::tables::calls::{resolve_cache, resolve_locks, resolve_once};
use crate::tools_file::tables::command::{
    resolve_command, resolve_cwd, resolve_describe, resolve_probe,
};
use crate::tools_file::tables::env::{resolve_default_env, resolve_pass_env};
use crate::tools_file::tables::http::{ServersByName, resolve_http, resolve_mcp};
use crate::tools_file::tables::limits::reject_unsafe_retry;
use crate::tools_file::tables::messages::resolve_messages;
use crate::tools_file::tables::rules::ToolRules;
use crate::tools_file::tables::sandbox::{check_sandbox, resolve_sandbox};
use crate::tools_file::tables::schemas::{
    check_tool_name, check_tool_schema, resolve_input_schema, resolve_output_schema,
};
use crate::tools_file::tables::server_tools::ServerTools;
use crate::tools_file::tables::settings::Layer;
use crate::tools_file::tables::tool::{
    Defaults, ToolFile, check_wrapped, resolve_destructive, resolve_empty_output, resolve_ignored,
    resolve_normalize, resolve_status,
};
use crate::tools_file::tables::when::check_when;
use crate::types::{Backing, Effect, MessageTemplates, Span, TextNormalizer, Tool, ToolLock};

/// What the tools of a file inherit, share and refer to, resolved before them.
pub(crate) struct ToolParts<'p> {
    pub(crate) defaults: &'p Layer,
    pub(crate) rules: &'p ToolRules<'p>,
    pub(crate) programs: &'p ProgramDefaults,
    pub(crate) normalizers: &'p [TextNormalizer],
    pub(crate) messages: &'p MessageTemplates,
    pub(crate) servers: &'p ServersByName,
    pub(crate) server_tools: &'p ServerTools<'p>,
}

/// Resolves what `defaults` says about every program. Nothing in it can depend on the input of a call.
pub(crate) fn resolve_program_defaults(
    defaults: &Defaults,
    root: PathBuf,
    diagnostics: &mut Diagnostics,
) -> ProgramDefaults {
    // Accepts any name, so that a placeholder is reported for what it is.
    let any_input = json!({"type": "object"});
    let bare = ProgramDefaults {
        cwd: root.clone(),
        root,
        env: Vec::new(),
        pass_env: Vec::new(),
        wrapper: None,
    };
    let mut context = ToolContext::new(&any_input, &bare, diagnostics);
    ProgramDefaults {
        env: resolve_default_env(&defaults.env, &mut context),
        pass_env: resolve_pass_env(&defaults.pass_env, &mut context),
        cwd: resolve_cwd(&defaults.cwd, &mut context),
        wrapper: resolve_wrapper(&defaults.wrapper, &mut context),
        root: bare.root.clone(),
    }
}

/// Resolves the tools of the file, in its order, followed by those that its servers announce.
pub(crate) fn resolve_tools(
    declared: &Field<SpannedTable<ToolFile>>,
    parts: &ToolParts<'_>,
    context: &mut CheckContext<'_>,
) -> Vec<Arc<Tool>> {
    let server_tools = parts.server_tools;
    let undeclared = server_tools.list_undeclared(context.diagnostics);
    let names: Vec<&str> = declared
        .entries()
        .map(|(name, _)| name)
        .chain(undeclared.iter().map(|tool| &*tool.name))
        .collect();
    parts.rules.warn_about_unused(&names, context.diagnostics);
    let mut tools = Vec::new();
    for (name, tool) in declared.entries() {
        let schema = resolve_input_schema(name, tool, server_tools, context);
        let keys = &tool.value;
        check_when(
            name,
            (&keys.concurrency_safe, &keys.settings.approve),
            &schema,
            context,
        );
        let mut resolved = resolve_tool((name, tool, &schema), parts, context);
        resolved.awaits_list = server_tools.awaits_list(name, &tool.value);
        resolved.output_schema = resolve_output_schema(name, &tool.value, resolved.output, context);
        tools.push(Arc::new(resolved));
    }
    for tool in &undeclared {
        let declaration = (&*tool.name, &tool.entry, &tool.schema);
        tools.push(Arc::new(resolve_tool(declaration, parts, context)));
    }
    tools
}

/// Resolves a tool: its name, keys, and the schema of its input. Problems are added to the diagnostics; if one of them is an
/// error, the tool must not be used.
fn resolve_tool(
    (name, file, schema): (&str, &Spanned<ToolFile>, &Value),
    parts: &ToolParts<'_>,
    file_context: &mut CheckContext<'_>,
) -> Tool {
    let context = &mut ToolContext::new(schema, parts.programs, file_context.diagnostics);
    check_tool_name(name, file.key_span, context);
    check_tool_schema(name, schema, file.key_span, context);
    let tool = &file.value;
    let rules = parts.rules;
    let own = Layer {
        tool: tool.settings.clone(),
        ..Layer::default()
    };
    own.check(context.diagnostics);
    let defaults = parts.server_tools.defaults(&tool.mcp).map_or_else(
        || parts.defaults.clone(),
        |defaults| defaults.settings.over(parts.defaults),
    );
    let settings = own.over(&rules.layer(name, &defaults));
    let lock = parts.server_tools.tool_lock(name, &tool.mcp);
    let locked_effect = parts.server_tools.effect(name, &tool.mcp);
    let effect = tool
        .effect
        .copied()
        .or_else(|| rules.effect(name))
        .or(locked_effect)
        .unwrap_or_default();
    let is_agent = !tool.agent.is_missing();
    if effect == Effect::Write && !is_agent {
        reject_unsafe_retry(&tool.settings.retry, context.diagnostics);
    }
    let inherited = settings.resolve(effect, is_agent);
    let compare = tool.compare.copied().unwrap_or_default();
    resolve_surroundings(tool, &settings, context);
    let backing = resolve_backing(name, file, &settings, parts, context);
    report_unused_sandbox(tool, backing.as_ref(), context.diagnostics);
    Tool {
        name: name.to_owned(),
        description: resolve_description(tool, lock),
        display_name: tool.display_name.value().cloned(),
        category: tool.category.value().cloned(),
        input_schema: schema.clone(),
        describe: resolve_describe(&tool.describe, backing.as_ref(), context),
        safety: rules.resolve_safety(name, tool, locked_effect),
        locks: resolve_locks(&tool.locks, is_agent, &tool.concurrency_safe, context),
        destructive: resolve_destructive(&tool.destructive, effect, context.diagnostics),
        open_world: tool.open_world.copied(),
        estimate: tool.estimate.value().map(|estimate| estimate.0),
        paths: context.paths.clone(),
        status: resolve_status(tool, context),
        probe: resolve_probe(&tool.probe, effect, backing.as_ref(), context),
        backing,
        raw_output: tool.raw.copied().unwrap_or_default(),
        empty_output: resolve_empty_output(&tool.empty, inherited.output, context.diagnostics),
        cache: resolve_cache(&tool.cache, effect, context.diagnostics),
        once: resolve_once(&tool.once, effect, file_context.dir, context),
        compare,
        ignore: resolve_ignored(&tool.ignore, compare, context.diagnostics),
        normalize: resolve_normalize(
            &tool.normalize,
            compare,
            parts.normalizers,
            context.diagnostics,
        ),
        messages: resolve_tool_messages(tool, parts.messages, context.diagnostics),
        ..inherited
    }
}

/// Resolves what the tool's programs depend on (its paths, sandbox and wrapper) into the context.
fn resolve_surroundings(tool: &ToolFile, settings: &Layer, context: &mut ToolContext<'_>) {
    context.paths = resolve_value_names(
        tool.paths.items(),
        "only inputs in the schema can be kept inside the root",
        context,
    );
    context.has_no_paths = !tool.paths.is_missing() && context.paths.is_empty();
    check_sandbox(&tool.settings.sandbox, context);
    context.sandbox = resolve_sandbox(&settings.tool.sandbox);
    context.wrapper = resolve_wrapper(&tool.wrapper, context);
    check_wrapped(tool, context.diagnostics);
}

/// Reports the sandbox of a tool that runs no program.
fn report_unused_sandbox(
    tool: &ToolFile,
    backing: Option<&Backing>,
    diagnostics: &mut Diagnostics,
) {
    let runs_program = matches!(backing, Some(Backing::Command(_)) | None)
        || !tool.probe.is_missing()
        || !tool.describe.is_missing();
    let Some(field) = tool.settings.sandbox.spanned().filter(|_| !runs_program) else {
        return;
    };
    let hint = if matches!(backing, Some(Backing::Mcp(_))) {
        "write it with the server, under `servers`: it confines the program that serves the tool"
    } else {
        "remove it: it confines programs"
    };
    diagnostics.error(
        field.key_span,
        "`sandbox` has no meaning for a tool that runs no program",
        hint,
    );
}

/// Returns the file's messages with those of the tool above them.
fn resolve_tool_messages(
    tool: &ToolFile,
    shared: &MessageTemplates,
    diagnostics: &mut Diagnostics,
) -> MessageTemplates {
    let mut templates = shared.clone();
    templates.extend(resolve_messages(&tool.messages, diagnostics));
    templates
}

/// Returns the tool's own description, or the one that its server had when it was locked.
fn resolve_description(tool: &ToolFile, lock: Option<&ToolLock>) -> String {
    tool.description
        .value()
        .or(lock.and_then(|lock| lock.definition.description.as_ref()))
        .cloned()
        .unwrap_or_default()
}

/// Returns what runs the calls of the tool `name`, or `None` if its declaration has an error.
fn resolve_backing(
    name: &str,
    file: &Spanned<ToolFile>,
    settings: &Layer,
    parts: &ToolParts<'_>,
    context: &mut ToolContext<'_>,
) -> Option<Backing> {
    let tool = &file.value;
    let mut given: Vec<Span> = [
        tool.command.key_span(),
        tool.http.key_span(),
        tool.agent.key_span(),
        tool.mcp.key_span(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let is_host_tool = check_backing_key(name, file, context.diagnostics);
    given.extend(tool.backing.key_span().filter(|_| is_host_tool));
    given.sort_unstable();
    for second in given.into_iter().skip(1) {
        context.diagnostics.error(
            (second, "the second one"),
            "a tool can only have one backing",
            "keep one of `command`, `http`, `agent` and `mcp`, or declare two tools",
        );
    }
    let (command, http) = (tool.command.spanned(), tool.http.spanned());
    let command = command
        .and_then(|form| resolve_command(form, (&settings.leftovers, &settings.limits), context));
    let http = http.and_then(|file| resolve_http(file, context));
    let agent = tool
        .agent
        .spanned()
        .and_then(|file| resolve_agent(file, context));
    let mcp = tool.mcp.spanned().and_then(|mcp| {
        let lock = parts.server_tools.tool_lock(name, &tool.mcp);
        resolve_mcp(name, mcp, parts.servers, lock, context)
    });
    command
        .map(Backing::Command)
        .or(http.map(Backing::Http))
        .or(agent.map(|agent| Backing::Agent(Box::new(agent))))
        .or(mcp.map(Backing::Mcp))
        .or(is_host_tool.then_some(Backing::Host))
}

/// Returns whether the host process serves the tool. Only tools that it announces itself can say so, and each of them has to.
fn check_backing_key(name: &str, file: &Spanned<ToolFile>, diagnostics: &mut Diagnostics) -> bool {
    let is_announced = diagnostics.sources().is_from_host(file.key_span);
    let given = file.value.backing.spanned();
    match given {
        Some(backing) if is_announced && backing.value == "host" => return true,
        Some(backing) if is_announced => diagnostics.error(
            backing.span,
            format!("`{name}` can't have this backing: it isn't `host`"),
            "write `\"backing\": \"host\"`; tools with another backing are declared in tools.yaml",
        ),
        Some(backing) => diagnostics.error(
            backing.key_span,
            "`backing` is only for the tools that a host process announces",
            "write what runs the tool: `command`, `http`, `agent` or `mcp`; a host process announces its own tools in the \
             `tools` line of `toolq run --follow --control`",
        ),
        None if is_announced => diagnostics.error(
            file.key_span,
            format!("`{name}` has no backing"),
            "add `\"backing\": \"host\"`",
        ),
        None => {}
    }
    false
}
