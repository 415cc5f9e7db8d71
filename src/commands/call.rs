//! `toolq call`: runs one call of one tool, to try it.

use std::sync::Arc;

use crate::args::{CallArguments as Arguments, CallFormat};
use crate::commands::single_call::{
    InputText, SingleAnswer, answer_text, check_accepted, prepare_call, read_call,
};
use crate::context::CommandContext;
use crate::output::stdout;
use crate::output::{CommandError, Exit};
use crate::session::{LogSubject, RunSession};
use crate::settings::SessionSettings;
use toolq_core::answer::render_answers;
use toolq_core::check::CallChecker;
use toolq_core::text::suggest_name;
use toolq_core::types::{AnswerForm, Call, Tool, ToolsConfig};

/// Calls the named tool with the input.
///
/// # Errors
/// tools.yaml or the input is invalid, there is no such tool, or the log can't be used: then nothing ran. Or stdout
/// can't be written.
pub fn call_tool(arguments: &Arguments, context: &CommandContext) -> Result<Exit, CommandError> {
    stdout::check_open()?;
    let tools = Arc::new(context.load_tools()?);
    let tool = find_tool(&tools, &arguments.name)?;
    let text = arguments.input.as_deref();
    let text = text.map_or(InputText::Stdin, InputText::Argument);
    let call = read_call(tool, text, &format!("toolq call {}", tool.name))?;
    let checked = CallChecker::new(Arc::clone(&tools)).check_call(call.clone());
    // The schema of a tool with a `describe` program isn't known yet.
    if !tool.needs_describe() {
        check_accepted(&checked)?;
    }
    let settings = SessionSettings::of_call(arguments, &context.environment);
    let subject = LogSubject::Call(&checked);
    let mut session = RunSession::begin(context, tools, &settings, subject)?;
    let mut answer = SingleAnswer::default();
    let result = session.block_on(async |session| run_call(session, call, &mut answer).await);
    session.sinks.close_screen();
    let result = result.and_then(|()| print_answer(&answer, arguments.to));
    let exits = [
        result.as_ref().err().map(|failure| failure.exit),
        answer.is_error().then_some(Exit::ProblemsFound),
    ];
    let exit = session.finish(exits.into_iter().flatten());
    result.map_err(|failure| CommandError { exit, ..failure })?;
    Ok(exit)
}

fn find_tool<'t>(tools: &'t ToolsConfig, name: &str) -> Result<&'t Arc<Tool>, CommandError> {
    tools.get(name).ok_or_else(|| {
        let known: Vec<&str> = tools.tools.iter().map(|tool| tool.name.as_str()).collect();
        let hint = match suggest_name(name, known.iter().copied()) {
            Some(near) => format!("did you mean {near}?"),
            None => "`toolq tools --format table` lists the tools".to_owned(),
        };
        CommandError::usage(format!("no tool is called {name}")).with_hint(hint)
    })
}

async fn run_call(
    session: &mut RunSession<'_>,
    call: Call,
    answer: &mut SingleAnswer,
) -> Result<(), CommandError> {
    let checked = prepare_call(session, call).await?;
    let RunSession { engine, sinks, .. } = session;
    engine.run_turn(0, vec![checked], sinks, answer).await;
    Ok(())
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
