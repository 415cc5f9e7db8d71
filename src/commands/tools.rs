//! `toolq tools`: prints the tool declarations for a model.

use std::sync::Arc;

use crate::args::{ToolsArguments as Arguments, ToolsFormat};
use crate::commands::tool_listing;
use crate::context::CommandContext;
use crate::output::stdout;
use crate::output::{CommandError, Exit};
use crate::session::ToolDescriber;
use toolq_core::answer;
use toolq_core::answer::DeclarationFormat;
use toolq_core::json::indent_json;
use toolq_core::types::{DescribeResult, Tool, ToolsConfig};

/// Renders the formats that show how tools run, rather than how a model sees them.
fn render_listing(
    tools: &ToolsConfig,
    format: ToolsFormat,
    context: &CommandContext,
) -> Result<Option<String>, CommandError> {
    Ok(match format {
        ToolsFormat::Table => {
            let color = context.stderr.is_stdout_colored();
            Some(tool_listing::to_table(tools, color))
        }
        ToolsFormat::Json => {
            let json = tool_listing::to_json(tools).map_err(CommandError::usage)?;
            let is_terminal = stdout::is_terminal();
            Some(if is_terminal {
                indent_json(&json)
            } else {
                json
            })
        }
        _ => None,
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
    if let Some(text) = render_listing(&tools, arguments.format, context)? {
        stdout::write_line(&text)?;
        return Ok(Exit::Ok);
    }
    let undescribed = tools.tools.iter().filter(|tool| tool.needs_describe());
    let undescribed: Vec<Arc<Tool>> = undescribed.cloned().collect();
    if !undescribed.is_empty() {
        ToolDescriber::new(&tools, context)?.describe_tools(&undescribed);
    }
    let failed_to_describe =
        |tool: &&Arc<Tool>| matches!(tool.describe_result(), Some(DescribeResult::Err(_)));
    if let Some(tool) = tools
        .tools
        .iter()
        .find(|tool| tool.needs_describe() || failed_to_describe(tool))
    {
        let message = format!("{} can't be declared without its schema", tool.name);
        return Err(CommandError::usage(message));
    }
    let format = match arguments.format {
        ToolsFormat::Anthropic => DeclarationFormat::Anthropic,
        ToolsFormat::OpenaiChat => DeclarationFormat::OpenAiChat,
        ToolsFormat::OpenaiResponses => DeclarationFormat::OpenAiResponses,
        ToolsFormat::Mcp => DeclarationFormat::Mcp,
        ToolsFormat::Markdown | ToolsFormat::Table | ToolsFormat::Json => {
            DeclarationFormat::Markdown
        }
    };
    let text = answer::render_declarations(&tools, format);
    if stdout::is_terminal() && arguments.format != ToolsFormat::Markdown {
        stdout::write_line(&indent_json(&text))?;
    } else {
        stdout::write_line(text.trim_end())?;
    }
    Ok(Exit::Ok)
}
