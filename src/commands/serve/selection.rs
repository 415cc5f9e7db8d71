//! Which tools are served, and how the list describes them.

use std::sync::Arc;

use globset::Glob;
use serde_json::{Value, json};

use crate::commands::serve::ServeArguments;
use crate::context::CommandContext;
use crate::output::CommandError;
use toolq_core::answer;
use toolq_core::types::{DescribeResult, Effect, Tool, ToolsConfig};
use toolq_mcp::server::ToolCatalog;
use toolq_mcp::{Implementation, Tool as ListedTool};

/// The longest name that all clients accept.
const MAX_NAME_BYTES: usize = 64;

/// Selects the tools that are served, in the order of the file, and then those that servers have announced. Those without a
/// backing aren't, since their calls would only fail.
///
/// # Errors
/// A glob is invalid, no tool is left, or clients would refuse the name of a tool.
pub(crate) fn select_tools(
    tools: &ToolsConfig,
    arguments: &ServeArguments,
    context: &CommandContext,
) -> Result<Vec<Arc<Tool>>, CommandError> {
    let globs = arguments.only.iter().map(|glob| {
        let compiled = Glob::new(glob).map(|glob| glob.compile_matcher());
        compiled.map_err(|error| CommandError::usage(format!("--only {glob}: {error}")))
    });
    let globs = globs.collect::<Result<Vec<_>, _>>()?;
    let is_selected = |tool: &Arc<Tool>| {
        let is_named = globs.is_empty() || globs.iter().any(|glob| glob.is_match(&tool.name));
        let is_known = !tool.awaits_list;
        is_known && is_named && (!arguments.read_only || tool.effect == Effect::Read)
    };
    let (served, without_backing): (Vec<_>, Vec<_>) = tools
        .known_tools()
        .into_iter()
        .filter(is_selected)
        .partition(|tool| tool.backing.is_some());
    for tool in without_backing {
        let note = format!("{} isn't served: nothing runs it", tool.name);
        context.stderr.print_note(&note);
    }
    if served.is_empty() {
        return Err(CommandError::usage("no tool is left to serve")
            .with_hint("`toolq tools --format table` lists the tools and their effects"));
    }
    let mut names = served.iter().map(|tool| &tool.name);
    if let Some(name) = names.find(|name| !is_accepted_name(name)) {
        let message = format!("clients refuse the whole list because of the name {name}");
        return Err(CommandError::usage(message).with_hint(
            "rename the tool (up to 64 letters, digits, `_` and `-`), or leave it out with `--only`",
        ));
    }
    Ok(served)
}

fn is_accepted_name(name: &str) -> bool {
    let is_accepted = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    name.len() <= MAX_NAME_BYTES && name.bytes().all(is_accepted)
}

/// Builds the list of tools. Those that failed to describe themselves are left out.
///
/// # Errors
/// A declaration isn't one of MCP.
pub(crate) fn build_catalog(served: &[Arc<Tool>]) -> Result<ToolCatalog, CommandError> {
    let is_usable =
        |tool: &&Arc<Tool>| !matches!(tool.describe_result(), Some(DescribeResult::Err(_)));
    let listed = served.iter().filter(is_usable).map(|tool| list_tool(tool));
    let listed = listed.collect::<Result<Vec<ListedTool>, _>>();
    let listed = listed.map_err(|error| {
        CommandError::usage(format!("a tool can't be described to clients: {error}"))
    })?;
    let server = Implementation {
        name: "toolq".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    Ok(ToolCatalog::new(server, None, listed))
}

fn list_tool(tool: &Tool) -> serde_json::Result<ListedTool> {
    let mut declaration = answer::mcp_declaration(tool);
    // MCP requires it, and every input is an object anyway.
    match &mut declaration["inputSchema"] {
        Value::Object(schema) => {
            schema.entry("type").or_insert_with(|| "object".into());
        }
        schema => *schema = json!({"type": "object"}),
    }
    serde_json::from_str(&declaration.to_string())
}
