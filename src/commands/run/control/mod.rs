//! `toolq run --follow --control`: each line is a message of a protocol, so that a host process can have several turns in
//! flight, cancel them, and approve calls.

mod host_calls;
mod host_lines;
mod line_handler;
mod message;
mod open_turns;
mod opening;
mod reply_line;
mod tools_in_use;
mod tools_loading;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::args::run::RunArguments as Arguments;
use crate::commands::run::control::host_calls::HostCalls;
use crate::commands::run::control::host_lines::HostLines;
use crate::commands::run::control::line_handler::LineHandler;
use crate::commands::run::control::open_turns::OpenTurns;
use crate::commands::run::control::opening::{OpeningTools, open_tools};
use crate::commands::run::control::reply_line::ready_line;
use crate::commands::run::control::tools_in_use::ToolsInUse;
use crate::commands::run::settings::session_settings;
use crate::context::CommandContext;
use crate::input::stdin;
use crate::output::{ClientOutput, CommandError, Exit};
use crate::session::{CallSource, RunSession};
use crate::settings::ApprovalSettings;
use toolq_core::types::{CallAnswer, CallRef, Event, EventSink, HaltCause};
use toolq_engine::AnswerDelivery;

/// How long the host may take to read the last answers.
const OUTPUT_GRACE: Duration = Duration::from_secs(2);

/// Answers the turns of the host on stdin until that ends, or a signal comes.
///
/// # Errors
/// The log can't be used: then nothing ran. Or stdin or stdout failed.
pub(super) fn run(
    arguments: &'static Arguments,
    context: &'static CommandContext,
) -> Result<Exit, CommandError> {
    let mut lines = HostLines::new(stdin::take()?, arguments.input.max_document);
    let opening = open_tools(&mut lines, context)?;
    let turns = Arc::new(OpenTurns::default());
    let host_calls = Arc::new(HostCalls::new(&turns));
    let mut settings = session_settings(arguments, &context.environment);
    if matches!(settings.approval, ApprovalSettings::Nobody) {
        settings.approval = ApprovalSettings::Prompt(Arc::clone(&turns) as Arc<_>);
    }
    settings.host_tools = Some(Arc::clone(&host_calls) as Arc<_>);
    let OpeningTools {
        tools,
        host_tools,
        line_id,
        has_bad_line,
    } = opening;
    let ready = host_tools
        .is_some()
        .then(|| ready_line(line_id.as_ref(), None));
    let session = RunSession::begin(context, Arc::new(tools), &settings, CallSource::Host)?;
    let (session, result) = session.run_on_worker(move |session| {
        Box::pin(async move {
            describe_tools(session).await;
            lines.read_in_background().map_err(CommandError::usage)?;
            let tools = ToolsInUse::new(session, host_tools, arguments.input.jobs.is_some());
            let handler = LineHandler::new(arguments, session, tools, (&turns, &host_calls));
            let host = Host {
                turns: &turns,
                calls: &host_calls,
                ready,
            };
            answer_turns(session, handler, lines, host).await
        })
    });
    let failure = result.as_ref().err().map(|failure| failure.exit);
    let is_incomplete = has_bad_line || matches!(result, Ok(false));
    let bad_line = is_incomplete.then_some(Exit::Incomplete);
    let exit = session.finish(failure.into_iter().chain(bad_line));
    result.map_err(|failure| CommandError { exit, ..failure })?;
    Ok(exit)
}

/// The other side of the pipes.
struct Host<'h> {
    turns: &'h OpenTurns,
    calls: &'h HostCalls,
    /// What tells it that its tools are in force, if it announced some.
    ready: Option<String>,
}

/// Returns whether every line was understood.
async fn answer_turns(
    session: &mut RunSession<'_>,
    mut handler: LineHandler<'_>,
    mut lines: HostLines,
    host: Host<'_>,
) -> Result<bool, CommandError> {
    let turns = host.turns;
    let (control, screen) = (session.engine.control(), session.sinks.screen());
    let output = ClientOutput::start(control.clone(), screen).map_err(CommandError::usage)?;
    let (sender, requests) = mpsc::unbounded_channel();
    turns.connect(output.clone(), Arc::clone(&session.setup.mask), sender);
    if let Some(ready) = host.ready {
        turns.send(ready);
    }
    let mut delivery = TurnAnswerSender(turns);
    let running = session
        .engine
        .run_concurrent_turns(requests, &mut session.sinks, &mut delivery);
    let mut running = pin!(running);
    let received = tokio::select! {
        biased;
        () = &mut running => Ok(()),
        received = handler.receive(&mut lines, &output, &control) => received,
    };
    turns.close();
    host.calls.close();
    // Every turn is answered, however long that takes: the host has said all it had to say, and waits.
    running.await;
    let written = timeout(OUTPUT_GRACE, output.wait_until_written()).await;
    written.map_err(|_| CommandError::new(Exit::Output, "the host doesn't read its answers"))?;
    if control.halt_cause() == Some(HaltCause::OutputLost) {
        return Err(CommandError::silent(Exit::Output));
    }
    received.map(|()| !handler.has_bad_line())
}

/// Sends the answer of a turn as soon as its last call has ended.
struct TurnAnswerSender<'t>(&'t OpenTurns);

impl AnswerDelivery for TurnAnswerSender<'_> {
    fn deliver(&mut self, call: &Arc<CallRef>, answer: CallAnswer, sink: &mut dyn EventSink) {
        self.0.answer(call, answer);
        // A log error is reported at the end.
        let _ = sink.emit(&[Event::ResultWritten { call }]);
    }

    fn finish_turn(&mut self, _: &mut dyn EventSink) {}
}

/// Runs the `describe` programs of all tools: calls are checked as soon as they come.
async fn describe_tools(session: &mut RunSession<'_>) {
    let tools = session.setup.tools.tools.iter();
    let undescribed: Vec<_> = tools
        .filter(|tool| tool.needs_describe())
        .cloned()
        .collect();
    if !undescribed.is_empty() {
        let discovery = session.engine.schema_discovery();
        discovery
            .discover(&undescribed, &mut session.warning_sink())
            .await;
    }
}
