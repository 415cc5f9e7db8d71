//! `toolq tools`: the declarations for a model.

use crate::cli::arguments::{Tools as Arguments, ToolsFormat};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::stdout;
use crate::model::pretty;
use crate::respond::{self, Declare};

/// Prints them.
///
/// # Errors
/// A wrong tools.yaml, or a stdout that takes no more.
pub fn tools(arguments: &Arguments, context: &Context) -> Result<Exit, Failure> {
    let tools = context.load_tools()?;
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
