//! `toolq call`: runs one call of one tool, to try it.

use std::sync::Arc;

use crate::args::{CallArguments as Arguments, CallFormat};
use crate::commands::single_call::{InputText, SingleAnswer, SingleCallSession, answer_text};
use crate::context::CommandContext;
use crate::output::stdout;
use crate::output::{CommandError, Exit};
use crate::settings::SessionSettings;
use toolq_core::answer::render_answers;
use toolq_core::text::quote_for_shell;
use toolq_core::text::suggest_name;
use toolq_core::types::{AnswerForm, Tool, ToolsConfig};

/// Calls the named tool with the input.
///
/// # Errors
/// tools.yaml or the input is invalid, there is no such tool, or the log can't be used: then nothing ran. Or stdout
/// can't be written.
pub fn call_tool(arguments: &Arguments, context: &CommandContext) -> Result<Exit, CommandError> {
    let tools = Arc::new(context.load_tools_to_run()?);
    let tool = Arc::clone(find_tool(&tools, &arguments.name, context)?);
    let settings = SessionSettings::of_call(arguments, &context.environment);
    let text = arguments.input.as_deref();
    let input = ("call", text.map_or(InputText::Stdin, InputText::Argument));
    let mut call = SingleCallSession::begin(context, tools, &tool, input, &settings)?;
    let result = call.run(|_| {}).map(drop);
    call.finish(result, None, |answer, _| print_answer(answer, arguments.to))
}

fn find_tool<'t>(
    tools: &'t ToolsConfig,
    name: &str,
    context: &CommandContext,
) -> Result<&'t Arc<Tool>, CommandError> {
    tools.get(name).ok_or_else(|| {
        let flag = context.tools_flag();
        let known: Vec<&str> = tools.tools.iter().map(|tool| tool.name.as_str()).collect();
        let hint = match suggest_name(name, known.iter().copied()) {
            Some(near) => format!("did you mean {near}?"),
            None if !tools.unlocked.is_empty() => {
                let servers = tools.unlocked.iter();
                let servers = servers.map(|unlocked| quote_for_shell(&unlocked.server.name));
                let servers = servers.collect::<Vec<_>>().join(" ");
                format!("if it is a tool of a server: `toolq servers lock{flag} {servers}` asks for its tools first")
            }
            None => format!("`toolq tools{flag} --format table` lists the tools"),
        };
        CommandError::usage(format!("no tool is called {name}")).with_hint(hint)
    })
}

/// Prints the result. An error is a result, too.
fn print_answer(answer: &SingleAnswer, to: CallFormat) -> Result<(), CommandError> {
    let Some(answer) = answer.get() else {
        return Ok(());
    };
    let text = match to {
        CallFormat::Text => answer_text(answer),
        CallFormat::Json => render_answers(AnswerForm::ResultLines, std::slice::from_ref(answer)),
    };
    Ok(stdout::write_line(&text)?)
}
