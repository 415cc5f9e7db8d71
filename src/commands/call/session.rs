//! A session with one call, and its answer once it is there.

use std::sync::Arc;

use crate::commands::call::input::{check_accepted, read_call};
use crate::context::CommandContext;
use crate::output::{CommandError, Exit, stdout};
use crate::session::{CallSource, RunSession};
use crate::settings::SessionSettings;
use toolq_core::check::CallChecker;
use toolq_core::types::{
    Call, CallAnswer, CallRef, CheckedCall, EmitError, Event, EventSink, ResultContent, Tool,
    ToolsConfig,
};
use toolq_engine::AnswerDelivery;

/// A session with one call.
pub(super) struct CallSession<'c> {
    pub(super) session: RunSession<'c>,
    answer: OnlyAnswer,
    call: Call,
}

impl<'c> CallSession<'c> {
    /// Begins a session for the call of `tool` with this input, or the one on stdin.
    ///
    /// # Errors
    /// The input is invalid, stdout is closed, or the log can't be used. Nothing ran.
    pub(super) fn begin(
        context: &'c CommandContext,
        tools: Arc<ToolsConfig>,
        tool: &Tool,
        input: Option<&str>,
        settings: &SessionSettings,
    ) -> Result<Self, CommandError> {
        stdout::check_open()?;
        let command = format!("toolq call{} {}", context.tools_flag(), tool.name);
        let call = read_call(tool, input, &command)?;
        let checked = CallChecker::new(Arc::clone(&tools)).check_call(call.clone());
        // The schema of a tool with a `describe` program isn't known yet.
        if !tool.needs_describe() {
            check_accepted(&checked)?;
        }
        Ok(Self {
            session: RunSession::begin(context, tools, settings, CallSource::Command)?,
            answer: OnlyAnswer(None),
            call,
        })
    }

    /// Runs the `describe` programs that the call needs, then the call. Shows `observe` all events.
    ///
    /// # Errors
    /// The input is invalid.
    pub(super) fn run(
        &mut self,
        mut observe: impl FnMut(&Event<'_>) + Send,
    ) -> Result<(), CommandError> {
        let Self {
            session,
            answer,
            call,
        } = self;
        session.block_on(async |session| {
            let calls = prepare_call(session, call.clone()).await?;
            let RunSession { engine, sinks, .. } = session;
            let mut sink = ObservedSink {
                observe: &mut observe,
                inner: sinks,
            };
            engine.run_turn(0, calls, &mut sink, answer).await;
            Ok(())
        })
    }

    /// Returns whether the call failed or has no answer.
    pub(super) fn is_error(&self) -> bool {
        self.answer.0.as_ref().is_none_or(|answer| answer.is_error)
    }

    /// Prints the answer if there is one, closes the session, and returns the most severe exit. `incomplete` is one that the
    /// command has found.
    ///
    /// # Errors
    /// `result` is one, or stdout can't be written.
    pub(super) fn finish(
        mut self,
        result: Result<(), CommandError>,
        incomplete: Option<Exit>,
        print: impl FnOnce(&CallAnswer, &ToolsConfig) -> Result<(), CommandError>,
    ) -> Result<Exit, CommandError> {
        self.session.sinks.close_screen();
        let result = result.and_then(|()| match &self.answer.0 {
            Some(answer) => print(answer, &self.session.setup.tools),
            None => Ok(()),
        });
        let exits = [
            result.as_ref().err().map(|failure| failure.exit),
            self.is_error().then_some(Exit::ProblemsFound),
            incomplete,
        ];
        let exit = self.session.finish(exits.into_iter().flatten());
        result.map_err(|failure| CommandError { exit, ..failure })?;
        Ok(exit)
    }
}

/// Runs the `describe` programs that the call needs, checks the call, and asks the memory about it.
async fn prepare_call(
    session: &mut RunSession<'_>,
    call: Call,
) -> Result<Vec<CheckedCall>, CommandError> {
    let call = [call];
    session.describe_tools(&call).await;
    let [call] = call;
    let checked = session.setup.checker.check_call(call);
    check_accepted(&checked)?;
    let parts = session.turn_parts();
    Ok(parts.engine.recall(vec![checked], parts.writes).await)
}

/// The answer of the call, once it is there.
struct OnlyAnswer(Option<CallAnswer>);

impl AnswerDelivery for OnlyAnswer {
    fn deliver(&mut self, _: &Arc<CallRef>, answer: CallAnswer, _: &mut dyn EventSink) {
        self.0 = Some(answer);
    }

    fn finish_turn(&mut self, _: &mut dyn EventSink) {}
}

/// Returns the text of an answer. Several blocks, or one that isn't text, are a JSON array.
pub(super) fn answer_text(answer: &CallAnswer) -> String {
    match &answer.content {
        ResultContent::Text(text) => text.clone(),
        ResultContent::Blocks(blocks) => {
            let blocks: Vec<&str> = blocks.iter().map(|block| block.get()).collect();
            format!("[{}]", blocks.join(","))
        }
    }
}

/// Shows events to an observer, then passes them on.
struct ObservedSink<'s> {
    observe: &'s mut (dyn FnMut(&Event<'_>) + Send),
    inner: &'s mut dyn EventSink,
}

impl EventSink for ObservedSink<'_> {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        for event in events {
            (self.observe)(event);
        }
        self.inner.emit(events)
    }

    fn shows_progress(&self, call: &CallRef) -> bool {
        self.inner.shows_progress(call)
    }
}
