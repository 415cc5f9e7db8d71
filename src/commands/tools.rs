//! `toolq tools`: prints the tool declarations for a model.

use std::sync::Arc;

use crate::args::tools::ToolsArguments as Arguments;
use crate::args::values::ToolsFormat;
use crate::commands::tool_listing;
use crate::context::CommandContext;
use crate::output::{CommandError, Exit, stdout};
use crate::session::ToolDescriber;
use toolq_core::answer::{self, DeclarationFormat};
use toolq_core::json::indent_json;
use toolq_core::types::{DescribeResult, Tool, ToolsConfig};

/// Says which servers have tools that aren't listed, since nothing is started for that.
fn note_unlocked(tools: &ToolsConfig, context: &CommandContext) {
    for server in &tools.unlocked {
        let name = &server.server.name;
        context.stderr.print_note(&format!(
            "not all tools of {name} are listed, since tools.lock doesn't have the server; `toolq servers {name}` asks it"
        ));
    }
}

/// Gets what tools and servers say about themselves. The tools of a server that can't be asked aren't declared.
///
/// # Errors
/// A tool can't be declared.
fn complete_definitions(
    tools: &Arc<ToolsConfig>,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let undescribed = tools.tools.iter().filter(|tool| tool.describe.is_some());
    let undescribed: Vec<Arc<Tool>> = undescribed.cloned().collect();
    if !undescribed.is_empty() || !tools.unlocked.is_empty() {
        let describer = ToolDescriber::new(tools, context)?;
        describer.list_servers(&tools.unlocked);
        describer.describe_tools(&undescribed);
        describer.close();
    }
    let failed_to_describe =
        |tool: &Tool| matches!(tool.describe_result(), Some(DescribeResult::Err(_)));
    if let Some(tool) = undescribed
        .iter()
        .find(|tool| tool.needs_describe() || failed_to_describe(tool))
    {
        let message = format!("{} can't be declared without its schema", tool.name);
        return Err(CommandError::usage(message));
    }
    let mut unlocked = tools.unlocked.iter();
    let are_all_known = unlocked.all(|server| matches!(server.listing(), Some(Ok(_))));
    Ok(if are_all_known {
        Exit::Ok
    } else {
        Exit::ProblemsFound
    })
}

/// Prints the declarations.
///
/// # Errors
/// tools.yaml is invalid, a tool can't describe itself, or stdout can't be written.
pub fn print_declarations(
    arguments: &Arguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let tools = Arc::new(context.load_tools()?);
    let is_terminal = stdout::is_terminal();
    let listing = match arguments.format {
        ToolsFormat::Declarations(format) => {
            let exit = complete_definitions(&tools, context)?;
            let text = answer::render_declarations(&tools, format);
            if is_terminal && format != DeclarationFormat::Markdown {
                stdout::write_line(&indent_json(&text))?;
            } else {
                stdout::write_line(text.trim_end())?;
            }
            return Ok(exit);
        }
        ToolsFormat::Table => tool_listing::to_table(&tools, context.stderr.is_stdout_colored()),
        ToolsFormat::Json => {
            let json = tool_listing::to_json(&tools).map_err(CommandError::usage)?;
            if is_terminal {
                indent_json(&json)
            } else {
                json
            }
        }
    };
    stdout::write_line(&listing)?;
    note_unlocked(&tools, context);
    Ok(Exit::Ok)
}
