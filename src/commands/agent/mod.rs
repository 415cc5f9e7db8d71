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
use crate::commands::single_call::{
    InputText, SingleAnswer, check_accepted, prepare_call, read_call,
};
use crate::context::CommandContext;
use crate::output::{CommandError, Exit, StderrWriter};
use crate::session::{LogSubject, RunSession};
use crate::settings::SessionSettings;
use toolq_core::answer::strip_hint;
use toolq_core::check::CallChecker;
use toolq_core::types::{Call, CheckedCall, ResumeState};

/// Runs the named agent on the input.
///
/// # Errors
/// tools.yaml or the input is invalid, there is no such agent, or the log can't be used: then nothing ran. Or stdout
/// can't be written.
pub fn run_agent(arguments: &Arguments, context: &CommandContext) -> Result<Exit, CommandError> {
    let tools = Arc::new(context.load_tools()?);
    let agent = find_agent(&tools, &arguments.name)?;
    let command = format!("toolq agent {}", agent.name);
    let call = read_call(agent, InputText::Stdin, &command)?;
    let checked = CallChecker::new(Arc::clone(&tools)).check_call(call.clone());
    // The schema of an agent with a `describe` program isn't known yet.
    if !agent.needs_describe() {
        check_accepted(&checked)?;
    }
    let settings = SessionSettings::of_agent(arguments, &context.environment);
    let subject = LogSubject::Call(&checked);
    let mut session = RunSession::begin(context, tools, &settings, subject)?;
    let mut transcript =
        AgentTranscript::new(Arc::clone(&session.mask), session.resume.agent_history());
    let mut answer = SingleAnswer::default();
    let shows_conversation = arguments.to == AnswerFormat::Messages;
    let result = session.block_on(async |session| {
        let answered = run_call(session, call, &mut transcript, &mut answer).await?;
        if let Some(answered) = answered.filter(|_| shows_conversation) {
            restore_conversation(session, answered, &mut transcript).await;
        }
        Ok(())
    });
    finish(session, result, &transcript, &answer, arguments.to)
}

/// Runs the `describe` programs of the agent and of the tools it may call, then the agent. Returns the call if its answer
/// came from the log, so that the agent didn't run.
async fn run_call(
    session: &mut RunSession<'_>,
    call: Call,
    transcript: &mut AgentTranscript,
    answer: &mut SingleAnswer,
) -> Result<Option<CheckedCall>, CommandError> {
    let checked = prepare_call(session, call).await?;
    let is_answered = matches!(checked.resume_state, ResumeState::Answered(_));
    let answered = is_answered.then(|| checked.clone());
    let RunSession { engine, sinks, .. } = session;
    let mut sink = transcript.recording_sink(sinks);
    engine.run_turn(0, vec![checked], &mut sink, answer).await;
    Ok(answered)
}

/// Prints the answer, closes the session, and returns the most severe exit.
fn finish(
    mut session: RunSession<'_>,
    result: Result<(), CommandError>,
    transcript: &AgentTranscript,
    answer: &SingleAnswer,
    to: AnswerFormat,
) -> Result<Exit, CommandError> {
    let stderr = &session.context.stderr;
    session.sinks.close_screen();
    let result = result.and_then(|()| print_answer(transcript, answer, to, &session.tools));
    let exits = [
        result.as_ref().err().map(|failure| failure.exit),
        answer.is_error().then_some(Exit::ProblemsFound),
        // Its result is only its last text.
        (transcript.agent_usage.ran_out_of_turns && !answer.is_error()).then_some(Exit::Incomplete),
    ];
    let exit = session.finish(exits.into_iter().flatten());
    result.map_err(|failure| CommandError { exit, ..failure })?;
    match answer.error_text() {
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
