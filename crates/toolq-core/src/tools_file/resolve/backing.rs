//! Resolves what runs a tool's calls: a command, an HTTP request, an agent, or a tool of an MCP server.

use crate::tools_file::keys::{Defaults, ToolFile};
use crate::tools_file::resolve::agent;
use crate::tools_file::resolve::command;
use crate::tools_file::resolve::context::ToolContext;
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::resolve::http;
use crate::tools_file::resolve::server;
use crate::tools_file::resolve::tool::SharedSettings;
use crate::tools_file::spanned::Spanned;
use crate::types::{Backing, Span};

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
        .and_then(|form| command::resolve_command(form, defaults, context));
    let http = tool
        .http
        .spanned()
        .and_then(|file| http::resolve_http(file, context));
    let agent = tool
        .agent
        .spanned()
        .and_then(|file| agent::resolve_agent(file, context));
    let mcp = tool
        .mcp
        .spanned()
        .and_then(|file| server::resolve_mcp(name, file, shared, context));
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
