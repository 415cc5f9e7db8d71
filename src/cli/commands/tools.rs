//! `toolq tools`: the declarations for a model.

use std::sync::Arc;

use crate::cli::arguments::{Tools as Arguments, ToolsFormat};
use crate::cli::context::Context;
use crate::cli::describe;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::stdout;
use crate::model::{Said, Tool, pretty};
use crate::respond::{self, Declare};

/// Prints them.
///
/// # Errors
/// A wrong tools.yaml, a tool that can't describe itself, or a stdout that takes no more.
pub fn tools(arguments: &Arguments, context: &Context) -> Result<Exit, Failure> {
    let tools = describe::ask(context.load_tools()?, context)?;
    let silent = |tool: &&Arc<Tool>| {
        let describe = tool.describe.as_ref();
        describe.is_some_and(|describe| describe.said != Said::Well)
    };
    if let Some(tool) = tools.tools.iter().find(silent) {
        let message = format!("{} can't be declared without its schema", tool.name);
        return Err(Failure::usage(message));
    }
    let format = match arguments.format {
        ToolsFormat::Anthropic => Declare::Anthropic,
        ToolsFormat::OpenaiChat => Declare::OpenAiChat,
        ToolsFormat::OpenaiResponses => Declare::OpenAiResponses,
        ToolsFormat::Mcp => Declare::Mcp,
        ToolsFormat::Markdown => Declare::Markdown,
    };
    let text = respond::declare(&tools, format);
    if stdout::is_terminal() && arguments.format != ToolsFormat::Markdown {
        stdout::line(&pretty(&text))?;
    } else {
        stdout::line(text.trim_end())?;
    }
    Ok(Exit::Ok)
}
