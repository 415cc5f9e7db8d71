//! Resolves all tools of a file, with what they share.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::tools_file::keys::{Defaults, ToolsFile};
use crate::tools_file::lints::when_schema::{self, WhenField};
use crate::tools_file::resolve::attempt_limits;
use crate::tools_file::resolve::command_defaults::CommandDefaults;
use crate::tools_file::resolve::context::{CheckContext, ToolContext};
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::resolve::input_schema;
use crate::tools_file::resolve::normalizers;
use crate::tools_file::resolve::output_schema;
use crate::tools_file::resolve::resource_limits;
use crate::tools_file::resolve::sandbox;
use crate::tools_file::resolve::server::ServersByName;
use crate::tools_file::resolve::server_tools::ServerTools;
use crate::tools_file::resolve::start_limits;
use crate::tools_file::resolve::tool::{self, SharedSettings};
use crate::tools_file::resolve::tool_rules::ToolRules;
use crate::types::{MessageTemplates, Span, Tool};

/// What the tools refer to, resolved before them.
pub(crate) struct ToolParts<'p> {
    pub(crate) root: &'p Path,
    pub(crate) messages: &'p MessageTemplates,
    pub(crate) servers: &'p ServersByName,
    pub(crate) server_tools: &'p ServerTools<'p>,
    pub(crate) command_defaults: &'p CommandDefaults,
}

/// Resolves the tools of the file, in its order, followed by those that its servers announce.
pub(crate) fn resolve_tools(
    file: &ToolsFile,
    parts: &ToolParts<'_>,
    context: &mut CheckContext<'_, '_>,
) -> Vec<Arc<Tool>> {
    check_has_tools(file, context);
    let no_defaults = Defaults::default();
    let defaults = file.defaults.value().unwrap_or(&no_defaults);
    check_defaults(defaults, context.diagnostics);
    check_shared_approvals(file, context);
    let rules = ToolRules::read(&file.rules, context.diagnostics);
    let server_tools = parts.server_tools;
    let undeclared = server_tools.list_undeclared(context.diagnostics);
    let names = file.tools.entries().map(|(name, _)| name);
    let names = names.chain(undeclared.iter().map(|tool| &*tool.name));
    let names: Vec<&str> = names.collect();
    rules.warn_about_unused(&names, context.diagnostics);
    let normalizers = normalizers::resolve_normalizers(&file.normalize, context.diagnostics);
    let shared = SharedSettings {
        defaults,
        rules: &rules,
        normalizers: &normalizers,
        messages: parts.messages,
        servers: parts.servers,
        server_tools,
    };
    let mut tools = Vec::new();
    let resolve = |name: &str, tool, schema: &Value, diagnostics: &mut Diagnostics<'_>| {
        let mut tool_context = ToolContext {
            schema,
            why_no_input: None,
            root: parts.root,
            paths: Vec::new(),
            has_no_paths: false,
            command_defaults: parts.command_defaults,
            sandbox: None,
            wrapper: None,
            diagnostics,
        };
        tool::resolve_tool(name, tool, &shared, &mut tool_context)
    };
    for (name, tool) in file.tools.entries() {
        let schema = input_schema::resolve_input_schema(name, tool, server_tools, context);
        when_schema::check_when(name, tool, &schema, context);
        let mut resolved = resolve(name, tool, &schema, context.diagnostics);
        resolved.awaits_list = server_tools.awaits_list(name, &tool.value);
        resolved.output_schema =
            output_schema::resolve_output_schema(name, &tool.value, resolved.output, context);
        tools.push(Arc::new(resolved));
    }
    for tool in &undeclared {
        let resolved = resolve(&tool.name, &tool.entry, &tool.schema, context.diagnostics);
        tools.push(Arc::new(resolved));
    }
    tools
}

fn check_has_tools(file: &ToolsFile, context: &mut CheckContext<'_, '_>) {
    let has_host_tools = context.diagnostics.sources().host_text().is_some();
    let has_entries = !file.tools.is_missing() || file.servers.entries().next().is_some();
    // An included file that can't be read has an error of its own.
    let includes_others = !file.include.is_missing();
    if !has_entries && !includes_others && !has_host_tools {
        context.diagnostics.error(
            Span::default(),
            "the file has no `tools`",
            "",
            "add `tools:` with each tool below it, by name; `toolq init` writes an example",
        );
    }
}

/// Checks those defaults that are resolved anew for each tool.
fn check_defaults(defaults: &Defaults, diagnostics: &mut Diagnostics<'_>) {
    attempt_limits::check_timeout(&defaults.timeout, diagnostics);
    attempt_limits::check_retry(&defaults.retry, diagnostics);
    attempt_limits::check_max_output(&defaults.max_output, diagnostics);
    resource_limits::check_resource_limits(&defaults.limits, diagnostics);
    sandbox::check_shared_sandbox(&defaults.sandbox, diagnostics);
    start_limits::check_start_limits(&defaults.max_parallel, &defaults.rate, diagnostics);
}

/// Checks the `approve: {when: SCHEMA}` of the defaults and of each rule.
fn check_shared_approvals(file: &ToolsFile, context: &mut CheckContext<'_, '_>) {
    let defaults = file.defaults.value();
    if let Some(field) = defaults.and_then(|defaults| WhenField::of_approve(&defaults.approve)) {
        when_schema::check_shared_when(&field, &["defaults"], context);
    }
    for (index, rule) in file.rules.items().enumerate() {
        if let Some(field) = WhenField::of_approve(&rule.value.approve) {
            when_schema::check_shared_when(&field, &["rules", &index.to_string()], context);
        }
    }
}
