//! `toolq tools`: the declarations for a model.

use std::sync::Arc;

use crate::args::{Tools as Arguments, ToolsFormat};
use crate::context::Context;
use crate::output::stdout;
use crate::output::{Exit, Failure};
use crate::session::Describer;
use toolq_core::answer;
use toolq_core::answer::Declare;
use toolq_core::json::pretty;
use toolq_core::types::{Said, Tool};

/// Prints them.
///
/// # Errors
/// A wrong tools.yaml, a tool that can't describe itself, or a stdout that takes no more.
pub fn tools(arguments: &Arguments, context: &Context) -> Result<Exit, Failure> {
    let tools = Arc::new(context.load_tools()?);
    let unasked = tools.tools.iter().filter(|tool| tool.is_unasked());
    let unasked: Vec<Arc<Tool>> = unasked.cloned().collect();
    if !unasked.is_empty() {
        Describer::new(&tools, context)?.ask(&unasked);
    }
    let is_silent = |tool: &&Arc<Tool>| matches!(tool.said(), Some(Said::Nothing(_)));
    if let Some(tool) = tools
        .tools
        .iter()
        .find(|tool| tool.is_unasked() || is_silent(tool))
    {
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
    let text = answer::declare(&tools, format);
    if stdout::is_terminal() && arguments.format != ToolsFormat::Markdown {
        stdout::line(&pretty(&text))?;
    } else {
        stdout::line(text.trim_end())?;
    }
    Ok(Exit::Ok)
}
