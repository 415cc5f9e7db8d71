//! `toolq agent`: runs one agent on an input from stdin and prints its answer.

mod agent_name;
mod answer;
mod recorded_conversation;
mod transcript;

use std::sync::Arc;

use crate::args::{AgentArguments as Arguments, AnswerFormat};
use crate::commands::agent::agent_name::find_agent;
use crate::commands::agent::answer::print_answer;
use crate::commands::agent::recorded_conversation::restore_conversation;
use crate::commands::agent::transcript::AgentTranscript;
use crate::commands::single_call::{InputText, SingleCallSession};
use crate::context::CommandContext;
use crate::output::{CommandError, Exit, StderrWriter};
use crate::settings::SessionSettings;
use toolq_core::answer::strip_hint;

/// Runs the named agent on the input.
///
/// # Errors
/// tools.yaml or the input is invalid, there is no such agent, or the log can't be used: then nothing ran. Or stdout
/// can't be written.
pub fn run_agent(arguments: &Arguments, context: &CommandContext) -> Result<Exit, CommandError> {
    let tools = Arc::new(context.load_tools_to_run()?);
    let agent = Arc::clone(find_agent(&tools, &arguments.name)?);
    let settings = SessionSettings::of_agent(arguments, &context.environment);
    let input = ("agent", InputText::Stdin);
    let mut call = SingleCallSession::begin(context, tools, &agent, input, &settings)?;
    let session = &call.session;
    let mut transcript =
        AgentTranscript::new(Arc::clone(&session.setup.mask), session.agent_history());
    let result = call.run(|event| transcript.record_event(event));
    let result = result.map(|answered| {
        if let Some(answered) = answered
            && arguments.to == AnswerFormat::Messages
        {
            call.session.block_on(async |session| {
                restore_conversation(session, answered, &mut transcript).await;
            });
        }
    });
    finish(call, result, &transcript, arguments.to)
}

/// Prints the answer, closes the session, and returns the most severe exit.
fn finish(
    call: SingleCallSession<'_>,
    result: Result<(), CommandError>,
    transcript: &AgentTranscript,
    to: AnswerFormat,
) -> Result<Exit, CommandError> {
    let stderr = &call.session.context.stderr;
    let error = call.answer.error_text();
    // Its result is only its last text.
    let is_incomplete = transcript.agent_usage.ran_out_of_turns && !call.answer.is_error();
    let incomplete = is_incomplete.then_some(Exit::Incomplete);
    let exit = call.finish(result, incomplete, |answer, tools| {
        print_answer(transcript, answer, to, tools)
    })?;
    match error {
        Some(error) if to == AnswerFormat::Text => {
            let error = strip_hint(&error);
            let (first, rest) = error.split_once('\n').unwrap_or((error, ""));
            let exit = stderr.print_error(&CommandError::new(exit, first.trim_end_matches('.')));
            StderrWriter::print_details(rest);
            Ok(exit)
        }
        _ => Ok(exit),
    }
}
