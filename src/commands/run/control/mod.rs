//! `toolq run --follow --control`: each line is a message of a protocol, so that a host process can have several turns in
//! flight, cancel them, and approve calls.

mod host_calls;
mod message;
mod open_turns;
mod tools_loading;

use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::args::{ApprovalSettings, InputFormat};
use crate::commands::run::arguments::{RunArguments, session_settings};
use crate::commands::run::control::host_calls::{HostCalls, HostLine, HostLines};
use crate::commands::run::control::message::{
    HostMessage, LineId, MessageError, error_line, list_line, plan_line, problem_line, ready_line,
};
use crate::commands::run::control::open_turns::OpenTurns;
use crate::commands::run::control::tools_loading::{ToolsInUse, load_tools};
use crate::context::CommandContext;
use crate::input::stdin;
use crate::output::{BackgroundWriter, CommandError, Exit, start_client_output, stdout};
use crate::session::{CallSource, RunSession};
use redact::Mask;
use toolq_core::answer;
use toolq_core::plan::{TurnPlan, render_plan_json};
use toolq_core::tools_file::HostToolDeclarations;
use toolq_core::transcript::{FollowedLine, LineFollower, Recording};
use toolq_core::types::{
    AnswerForm, CallAnswer, CallRef, Event, EventSink, HaltCause, ToolsConfig, Turn, TurnOrigin,
};
use toolq_engine::RunControl;

/// How long the host may take to read the last answers.
const OUTPUT_GRACE: Duration = Duration::from_secs(2);

/// Answers the turns of the host on stdin until that ends, or a signal comes.
///
/// # Errors
/// The log can't be used: then nothing ran. Or stdin or stdout failed.
pub(super) fn run(
    arguments: &'static RunArguments,
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
    let ready = host_tools.is_some().then(|| ready_line(line_id.as_ref()));
    let session = RunSession::begin(context, Arc::new(tools), &settings, CallSource::Host)?;
    let (session, result) = session.run_on_worker(move |session| {
        Box::pin(async move {
            // Calls are checked as soon as they come.
            session.list_unlocked_servers().await;
            let tools = Arc::clone(&session.setup.tools);
            session.describe_all(&tools.tools).await;
            lines.read_in_background().map_err(CommandError::usage)?;
            let tools = ToolsInUse::new(session, host_tools, arguments.input.jobs.is_some());
            let handler = LineHandler::new(arguments, session, tools, (&turns, &host_calls));
            answer_turns(session, handler, lines, ready).await
        })
    });
    let is_incomplete = has_bad_line || matches!(result, Ok(false));
    session.conclude(result.map(drop), is_incomplete.then_some(Exit::Incomplete))
}

/// Returns whether every line was understood. `ready` tells the host that its tools are in force, if it announced some.
async fn answer_turns(
    session: &mut RunSession<'_>,
    mut handler: LineHandler<'_>,
    mut lines: HostLines,
    ready: Option<String>,
) -> Result<bool, CommandError> {
    let turns = Arc::clone(&handler.turns);
    let (control, screen) = (session.engine.control(), session.sinks.screen());
    let output = start_client_output(control.clone(), screen).map_err(CommandError::usage)?;
    let (sender, requests) = mpsc::unbounded_channel();
    turns.connect(output.clone(), Arc::clone(&session.setup.mask), sender);
    if let Some(ready) = ready {
        turns.send(ready);
    }
    // The answer of a turn is sent as soon as its last call has ended.
    let mut delivery = |call: &Arc<CallRef>, answer: CallAnswer, sink: &mut dyn EventSink| {
        turns.answer(call, answer);
        // A log error is reported at the end.
        let _ = sink.emit(&[Event::ResultWritten { call }]);
    };
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
    handler.host_calls.close();
    // Every turn is answered, however long that takes: the host has said all it had to say, and waits.
    running.await;
    let written = timeout(OUTPUT_GRACE, output.wait_until_at_most(0)).await;
    written.map_err(|_| CommandError::new(Exit::Output, "the host doesn't read its answers"))?;
    if control.halt_cause() == Some(HaltCause::OutputLost) {
        return Err(CommandError::silent(Exit::Output));
    }
    received.map(|()| !handler.has_bad_line())
}

// What happens before the session begins: the host may announce tools, which the log has to know.

/// How the message about an unusable file ends.
const NOTHING_RAN: &str = "; nothing ran";

/// The tools that a session begins with.
struct OpeningTools {
    tools: ToolsConfig,
    /// What the host has announced.
    host_tools: Option<HostToolDeclarations>,
    /// The id of the line that announced it. Both are `None` if there was no such line.
    line_id: Option<LineId>,
    /// Whether a line wasn't understood.
    has_bad_line: bool,
}

/// Reads lines until the tools are known: those of tools.yaml, and those of the host if it begins with a `tools` line.
/// Lines that are wrong are answered.
///
/// # Errors
/// tools.yaml can't be used, or stdin or stdout fails.
fn open_tools(
    lines: &mut HostLines,
    context: &CommandContext,
) -> Result<OpeningTools, CommandError> {
    let mut has_bad_line = false;
    loop {
        let line = lines.next_blocking().map_err(|error| {
            CommandError::new(Exit::Incomplete, format!("failed to read stdin: {error}"))
        })?;
        let (id, tools) = match line {
            Some(Ok(HostMessage::Tools { id, tools })) => (id, tools),
            Some(Err(error)) => {
                has_bad_line = true;
                refuse_line(&error, context)?;
                continue;
            }
            other => {
                if let Some(line) = other {
                    lines.put_back(line);
                }
                let tools = load_tools(context, None, NOTHING_RAN);
                return Ok(OpeningTools {
                    tools: tools.map_err(|failure| failure.error)?,
                    host_tools: None,
                    line_id: None,
                    has_bad_line,
                });
            }
        };
        let host_tools = match HostToolDeclarations::new(&tools) {
            Ok(host_tools) => host_tools,
            Err(problem) => {
                has_bad_line = true;
                let message = problem.message;
                refuse_line(&MessageError { id, message }, context)?;
                continue;
            }
        };
        match load_tools(context, Some(&host_tools), NOTHING_RAN) {
            Ok(tools) => {
                return Ok(OpeningTools {
                    tools,
                    host_tools: Some(host_tools),
                    line_id: id,
                    has_bad_line,
                });
            }
            Err(failure) if failure.is_of_host => {
                has_bad_line = true;
                let line = problem_line(id.as_ref(), &failure.summary(), &failure.problems);
                stdout::write_lines(line.as_bytes())?;
            }
            Err(failure) => return Err(failure.error),
        }
    }
}

/// Answers a line that is wrong. What tools.yaml calls secret is masked in the answer.
fn refuse_line(error: &MessageError, context: &CommandContext) -> Result<(), CommandError> {
    let message = match context.read_tools_file() {
        Ok(file) => file.mask.apply(&error.message).into_owned(),
        // Without the file, it isn't known what is secret.
        Err(_) => error.message.clone(),
    };
    stdout::write_lines(error_line(error.id.as_ref(), &message).as_bytes())?;
    Ok(())
}

// Acts on the lines of the host.

/// Acts on lines.
struct LineHandler<'a> {
    turns: Arc<OpenTurns>,
    host_calls: Arc<HostCalls>,
    context: &'a CommandContext,
    tools: ToolsInUse<'a>,
    mask: Arc<Mask>,
    jobs: Option<NonZeroUsize>,
    messages: LineFollower,
    form: Option<AnswerForm>,
    include_answered: bool,
    has_bad_line: bool,
}

impl<'a> LineHandler<'a> {
    fn new(
        arguments: &RunArguments,
        session: &RunSession<'a>,
        tools: ToolsInUse<'a>,
        (turns, host_calls): (&Arc<OpenTurns>, &Arc<HostCalls>),
    ) -> Self {
        Self {
            turns: Arc::clone(turns),
            host_calls: Arc::clone(host_calls),
            context: session.context,
            tools,
            mask: Arc::clone(&session.setup.mask),
            jobs: arguments.input.jobs,
            messages: LineFollower::new(
                "message",
                arguments.input.from.and_then(InputFormat::dialect),
                arguments.input.max_document,
            ),
            form: arguments.to,
            include_answered: arguments.input.all,
            has_bad_line: false,
        }
    }

    /// Handles lines until the host closes stdin, or the run is stopped.
    async fn receive(
        &mut self,
        lines: &mut HostLines,
        output: &BackgroundWriter,
        control: &RunControl,
    ) -> Result<(), CommandError> {
        loop {
            let line = tokio::select! {
                biased;
                () = control.wait_for_external_halt() => return Ok(()),
                line = lines.next(output) => line,
            };
            let line = line.map_err(|error| {
                let message = format!("failed to read the rest of the input: {error}");
                CommandError::new(Exit::Incomplete, message)
            })?;
            match line {
                Some(line) => self.handle_line(line),
                None => return Ok(()),
            }
        }
    }

    /// Returns whether a line wasn't understood.
    fn has_bad_line(&self) -> bool {
        self.has_bad_line
    }

    fn handle_line(&mut self, line: HostLine) {
        if let Err(MessageError { id, message }) = line.and_then(|message| self.handle(message)) {
            self.has_bad_line = true;
            self.turns.refuse(id.as_ref(), &message);
        }
    }

    fn handle(&mut self, message: HostMessage) -> Result<(), MessageError> {
        let about = |id: LineId| {
            move |message: String| MessageError {
                id: Some(id),
                message,
            }
        };
        match message {
            HostMessage::Tools { id, .. } => Err(MessageError {
                id,
                message: "`tools` must be the first line".to_owned(),
            }),
            HostMessage::Turn { id, message } => self.begin_turn(&id, &message).map_err(about(id)),
            HostMessage::Cancel { id } => self.turns.cancel(&id).map_err(about(id)),
            HostMessage::Approve {
                id,
                question,
                decision,
                reason,
            } => {
                let decided = self.turns.decide(&id, question, decision, reason);
                decided.map_err(about(id))
            }
            HostMessage::Result { id, result } => {
                self.host_calls.deliver(&id, result).map_err(about(id))
            }
            HostMessage::List { id, format } => {
                let tools = answer::render_declarations(self.tools.tools(), format);
                self.turns
                    .send(list_line(&id, &self.mask.apply_to_json(&tools)));
                Ok(())
            }
            HostMessage::Plan { id, message } => self.plan(&id, &message).map_err(about(id)),
            HostMessage::Reload { id } => {
                self.reload(id.as_ref());
                Ok(())
            }
        }
    }

    /// # Errors
    /// Why the message can't be answered.
    fn begin_turn(&mut self, id: &LineId, message: &RawValue) -> Result<(), String> {
        let turn = self.read_turn(message)?;
        let number = self.turns.next_number(id)?;
        let (form, origin) = match &turn {
            Some(turn) => (turn.answer_form, turn.origin.clone()),
            None => (AnswerForm::Blocks, TurnOrigin::default()),
        };
        let origin = TurnOrigin {
            input: turn.is_some().then(|| "-".to_owned()),
            ..origin
        };
        let calls = match turn {
            Some(turn) => self.tools.checker().check_turn(turn.with_number(number)),
            None => Vec::new(),
        };
        let form = self.form.unwrap_or(form);
        self.turns.begin(id.clone(), number, form, calls, origin);
        Ok(())
    }

    /// # Errors
    /// Why the message can't be planned.
    fn plan(&mut self, id: &LineId, message: &RawValue) -> Result<(), String> {
        let turn = self.read_turn(message)?;
        let tools = self.tools.tools();
        let calls = turn.map(|turn| self.tools.checker().check_turn(turn.with_number(0)));
        let calls = calls.unwrap_or_default();
        let jobs = self.jobs.unwrap_or(tools.concurrency);
        let plan = TurnPlan::new(0, &calls, tools, jobs);
        let plan = render_plan_json(&plan, &self.mask);
        self.turns.send(plan_line(id, &plan));
        Ok(())
    }

    fn reload(&mut self, id: Option<&LineId>) {
        match self.tools.reload() {
            Ok(change) => {
                let note = format!("{} was read again", change.path);
                self.context.stderr.print_note(&note);
                self.turns.change_tools(change);
                self.turns.send(ready_line(id));
            }
            Err(failure) => {
                self.has_bad_line = true;
                let message = format!("{}; the tools stay as they were", failure.summary());
                let message = self.mask.apply(&message);
                self.turns
                    .send(problem_line(id, &message, &failure.problems));
            }
        }
    }

    /// Returns the only turn of a message with open calls, or `None` if no turn has any.
    ///
    /// # Errors
    /// It isn't a message, or it has several such turns.
    fn read_turn(&mut self, message: &RawValue) -> Result<Option<Turn>, String> {
        let mut open = None;
        let Some(recording) = self.read_message(message)? else {
            return Ok(None);
        };
        for index in 0..recording.len() {
            let turn = recording.turn(index, self.include_answered);
            let turn = turn.map_err(|error| error.describe_without_place())?;
            if turn.calls.is_empty() {
                continue;
            }
            if open.replace(turn).is_some() {
                return Err(
                    "the message has several turns with open calls; send each as a turn of its own"
                        .to_owned(),
                );
            }
        }
        Ok(open)
    }

    /// Returns `None` for an API's own error, which has no calls.
    ///
    /// # Errors
    /// It isn't a message.
    fn read_message(&mut self, message: &RawValue) -> Result<Option<Box<Recording>>, String> {
        self.messages.push(message.get().as_bytes());
        self.messages.end_line();
        match self.messages.next() {
            Some(FollowedLine::Recording(recording)) => Ok(Some(recording)),
            Some(FollowedLine::ApiError(error)) => {
                let note = error.describe_without_place();
                self.context.stderr.print_note(&note);
                Ok(None)
            }
            Some(FollowedLine::Invalid(error)) => Err(error.describe_without_place()),
            None => Err("the message is empty".to_owned()),
        }
    }
}
