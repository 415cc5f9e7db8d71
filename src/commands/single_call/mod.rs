//! What `agent` and `call` share: a session with one call, which a person types.

mod answer;
mod input;
mod observed_sink;

pub(crate) use answer::{SingleAnswer, answer_text};
pub(crate) use input::InputText;

use std::sync::Arc;

use crate::commands::single_call::input::{check_accepted, read_call};
use crate::commands::single_call::observed_sink::ObservedSink;
use crate::context::CommandContext;
use crate::output::{CommandError, Exit, stdout};
use crate::session::{LogSubject, RunSession};
use crate::settings::SessionSettings;
use toolq_core::check::CallChecker;
use toolq_core::types::{Call, CheckedCall, Event, ResumeState, Tool, ToolsConfig};
use toolq_engine::PriorCalls as _;

/// A session with one call, and its answer once it is there.
pub(crate) struct SingleCallSession<'c> {
    pub(crate) session: RunSession<'c>,
    pub(crate) answer: SingleAnswer,
    call: Call,
}

impl<'c> SingleCallSession<'c> {
    /// Begins a session for the call of `tool` with this input. `command` is the name of the command, for hints.
    ///
    /// # Errors
    /// The input is invalid, stdout is closed, or the log can't be used. Nothing ran.
    pub(crate) fn begin(
        context: &'c CommandContext,
        tools: Arc<ToolsConfig>,
        tool: &Tool,
        (command, text): (&str, InputText<'_>),
        settings: &SessionSettings,
    ) -> Result<Self, CommandError> {
        stdout::check_open()?;
        let call = read_call(
            tool,
            text,
            &format!("toolq {command}{} {}", context.tools_flag(), tool.name),
        )?;
        let checked = CallChecker::new(Arc::clone(&tools)).check_call(call.clone());
        // The schema of a tool with a `describe` program isn't known yet.
        if !tool.needs_describe() {
            check_accepted(&checked)?;
        }
        let subject = LogSubject::Call(&checked);
        Ok(Self {
            session: RunSession::begin(context, tools, settings, subject)?,
            answer: SingleAnswer::default(),
            call,
        })
    }

    /// Runs the `describe` programs that the call needs, then the call. Shows `observe` all events, and returns the call if
    /// its answer came from the log, so that nothing ran.
    ///
    /// # Errors
    /// The input is invalid, or the log has another call.
    pub(crate) fn run(
        &mut self,
        mut observe: impl FnMut(&Event<'_>) + Send,
    ) -> Result<Option<CheckedCall>, CommandError> {
        let Self {
            session,
            answer,
            call,
        } = self;
        session.block_on(async |session| {
            let checked = prepare_call(session, call.clone()).await?;
            let is_answered = matches!(checked.resume_state, ResumeState::Answered(_));
            let answered = is_answered.then(|| checked.clone());
            let RunSession { engine, sinks, .. } = session;
            let mut sink = ObservedSink::new(&mut observe, sinks);
            engine.run_turn(0, vec![checked], &mut sink, answer).await;
            Ok(answered)
        })
    }

    /// Prints the answer if there is one, closes the session, and returns the most severe exit. `incomplete` is one that the
    /// command has found.
    ///
    /// # Errors
    /// `result` is one, or stdout can't be written.
    pub(crate) fn finish(
        mut self,
        result: Result<(), CommandError>,
        incomplete: Option<Exit>,
        print: impl FnOnce(&SingleAnswer, &ToolsConfig) -> Result<(), CommandError>,
    ) -> Result<Exit, CommandError> {
        self.session.sinks.close_screen();
        let result = result.and_then(|()| print(&self.answer, &self.session.setup.tools));
        let exits = [
            result.as_ref().err().map(|failure| failure.exit),
            self.answer.is_error().then_some(Exit::ProblemsFound),
            incomplete,
        ];
        let exit = self.session.finish(exits.into_iter().flatten());
        result.map_err(|failure| CommandError { exit, ..failure })?;
        Ok(exit)
    }
}

/// Runs the `describe` programs that the call needs, checks the call, and adds what earlier runs recorded about it.
async fn prepare_call(
    session: &mut RunSession<'_>,
    call: Call,
) -> Result<CheckedCall, CommandError> {
    let call = [call];
    session.describe_tools(&call).await;
    let [call] = call;
    let mut checked = session.setup.checker.check_call(call);
    check_accepted(&checked)?;
    checked.resume_state = session.resume.resume_state(&checked)?;
    Ok(checked)
}
