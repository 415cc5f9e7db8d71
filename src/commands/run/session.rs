//! `toolq run`: reads inputs other than streams to their end, waits for the first call, opens the log, and passes turn
//! after turn to the engine.

use std::sync::{Arc, OnceLock};

use crate::args::RunArguments as Arguments;
use crate::commands::run::streaming;
use crate::context::CommandContext;
use crate::input::CommandInput;
use crate::input::files;
use crate::output::stdout;
use crate::output::{AnswerPrinter, CommandError, Exit};
use crate::session::log_request;
use crate::session::{
    DescribeWarningSink, LogRequest, OpenedLog, ResumeDecisions, RunSinks, SignalHandler,
    build_runtime, default_engine_settings, halt_when_stdout_closes, spawn_ticker,
};
use toolq_core::check::{CallChecker, undescribed_tools};
use toolq_core::os::Clock;
use toolq_core::transcript::{InputSource, Recording};
use toolq_core::types::{Call, CheckedCall, HaltCause, InputLayout, ToolsConfig, Turn};
use toolq_engine::{Engine, EngineSettings, SchemaDiscovery, random_task_id};
use toolq_log::SessionLog;

/// Answers all calls of all inputs.
///
/// # Errors
/// tools.yaml or an input is invalid, or the log can't be used: then nothing ran. Or stdout can't be written: then the
/// results are in the log.
pub fn run(arguments: &Arguments, context: &CommandContext) -> Result<Exit, CommandError> {
    stdout::check_open()?;
    let tools = context.load_tools()?;
    let mut inputs = if arguments.follow {
        files::open_follow_inputs(&arguments.input)?
    } else {
        files::open_inputs(&arguments.input, InputSource::with_digest)?
    };
    if !streaming::wait_for_call(&mut inputs, arguments)? {
        return finish_without_calls(inputs, arguments, context);
    }
    let tools = Arc::new(tools);
    let jobs = arguments.input.jobs.unwrap_or(tools.concurrency);
    let runtime = build_runtime()?;
    let entered = runtime.enter();
    // Install these before opening the log: once opened, it has to be closed properly.
    let signals = SignalHandler::install().map_err(|error| {
        CommandError::usage(format!("failed to install signal handlers: {error}"))
    })?;
    let mask = Arc::new(context.build_mask(&tools));
    let checker = CallChecker::new(Arc::clone(&tools));
    let clock = Clock::system();
    let mut sinks = RunSinks::new(
        &arguments.watch,
        arguments.log.file.as_deref(),
        context,
        (&tools, jobs),
        &mask,
        clock.clone(),
    )?;
    let request = LogRequest {
        flags: &arguments.log,
        include_answered: arguments.input.all,
        jobs,
        context,
        tools: &tools,
        checker: &checker,
        mask: &mask,
        inputs: &inputs,
        single_call: None,
    };
    let OpenedLog {
        log,
        compared_turn: turn,
    } = log_request::begin_log(&request, &clock)?;
    let task = log
        .as_ref()
        .map_or_else(random_task_id, SessionLog::task_id);
    let history = log.as_ref().and_then(SessionLog::history);
    let earlier = ResumeDecisions::new(history, &request, turn.is_some());
    sinks.attach_log(log);
    let engine = Engine::new(EngineSettings {
        jobs,
        output_dir: sinks.output_dir(),
        task_id: task,
        budget_limits: (&arguments.budgets).into(),
        agent_history: earlier.agent_history(),
        ..default_engine_settings(&tools, &mask, context)
    });
    let mut session = RunSession {
        arguments,
        context,
        tools,
        discovery: engine.schema_discovery(),
        checker,
        resume: earlier,
        compared_turn: turn,
        engine,
        sinks,
        turns_before: 0,
        input_failures: Vec::new(),
        termination_signal: signals.termination_signal(),
    };
    drop(entered);
    let result = runtime.block_on(session.run(inputs, signals));
    let exit = session.finish(result);
    // Everything is written and no call is running; don't wait for leftover work such as a DNS lookup.
    runtime.shutdown_background();
    exit
}

/// The state of a run.
pub(crate) struct RunSession<'a> {
    pub(crate) arguments: &'a Arguments,
    pub(crate) context: &'a CommandContext,
    pub(crate) tools: Arc<ToolsConfig>,
    /// Runs the `describe` programs of tools when they are first called.
    pub(crate) discovery: SchemaDiscovery,
    pub(crate) checker: CallChecker,
    /// What the log says about the task being resumed.
    pub(crate) resume: ResumeDecisions,
    /// The only turn of the input, if it was already read for the comparison with the log.
    compared_turn: Option<Turn>,
    pub(crate) engine: Engine,
    pub(crate) sinks: RunSinks,
    /// Number of turns in the earlier inputs.
    pub(crate) turns_before: usize,
    /// The errors of inputs that broke off.
    input_failures: Vec<CommandError>,
    /// The signal that stopped the run.
    termination_signal: Arc<OnceLock<u8>>,
}

impl RunSession<'_> {
    /// Answers all inputs. A signal or a lost stdout stops running calls, and their answers say so.
    async fn run(
        &mut self,
        inputs: Vec<CommandInput>,
        signals: SignalHandler,
    ) -> Result<(), CommandError> {
        let (control, screen) = (self.engine.control(), self.sinks.screen());
        // Both tasks live until the program exits, because it can be interrupted while it closes the log, too.
        tokio::spawn(signals.handle_signals(control.clone(), screen.clone()));
        tokio::spawn(halt_when_stdout_closes(control));
        let ticking = screen.map(spawn_ticker);
        let result = self.answer_inputs(inputs).await;
        if let Some(ticking) = ticking {
            ticking.abort();
        }
        result
    }

    /// Answers one input after another. An input that breaks off doesn't stop the others.
    async fn answer_inputs(&mut self, inputs: Vec<CommandInput>) -> Result<(), CommandError> {
        for input in inputs {
            let answered = match input {
                CommandInput::Recording(recording) => self.answer_recording(&recording).await,
                CommandInput::Stream(stream) => self.answer_stream(*stream).await,
                CommandInput::Follow(lines) => self.answer_lines(*lines).await,
            };
            match answered {
                Err(error) if error.exit == Exit::Incomplete => self.input_failures.push(error),
                answered => answered?,
            }
        }
        Ok(())
    }

    pub(crate) async fn answer_recording(
        &mut self,
        recording: &Recording,
    ) -> Result<(), CommandError> {
        let all = self.arguments.input.all;
        let open = recording.open_turns(all);
        let mut printer = self.new_printer(recording.layout(), open);
        for index in 0..recording.len() {
            let turn = match self.compared_turn.take() {
                Some(turn) => turn,
                None => recording
                    .turn(index, all)?
                    .with_number(self.turns_before + index),
            };
            match (turn.calls.is_empty(), turn.answered_count) {
                (true, 0) => printer.print_empty_list(),
                (true, _) => {}
                (false, _) => {
                    printer.begin_turn(turn.answer_form);
                    self.describe_tools(&turn.calls).await;
                    let (number, calls) = (turn.number, self.check_turn(turn)?);
                    self.engine
                        .run_turn(number, calls, &mut self.sinks, &mut printer)
                        .await;
                }
            }
            self.check_output(&mut printer)?;
        }
        self.turns_before += recording.len();
        Ok(())
    }

    /// Runs the `describe` programs that these calls need and that haven't run yet.
    async fn describe_tools(&mut self, calls: &[Call]) {
        let undescribed = undescribed_tools(&self.tools, self.resume.open_calls(calls));
        let screen = self.sinks.screen();
        let mut sink = DescribeWarningSink::new(&mut self.sinks, &self.context.stderr, screen);
        self.discovery.discover(&undescribed, &mut sink).await;
    }

    /// Checks the calls of a turn, and adds what earlier runs recorded about them.
    fn check_turn(&self, turn: Turn) -> Result<Vec<CheckedCall>, CommandError> {
        let started = turn.started_positions.clone();
        let mut calls = self.checker.check_turn(turn);
        for checked in &mut calls {
            let known_from_input = started.contains(&checked.call.position);
            checked.resume_state = self.resume.resume_state(checked, known_from_input)?;
        }
        Ok(calls)
    }

    /// Creates a printer for an input of `layout` with `turns` turns.
    pub(crate) fn new_printer(&self, layout: InputLayout, turns: usize) -> AnswerPrinter {
        let to = self.arguments.to.map(Into::into);
        let printer = AnswerPrinter::new(to, layout, turns, self.sinks.screen());
        let printer = printer.with_control(self.engine.control());
        if self.arguments.follow {
            return printer.with_compact_output();
        }
        printer
    }

    /// Returns an error if stdout couldn't be written.
    pub(crate) fn check_output(&self, printer: &mut AnswerPrinter) -> Result<(), CommandError> {
        printer.check_written()?;
        if self.engine.control().halt_cause() == Some(HaltCause::OutputLost) {
            return Err(CommandError::silent(Exit::Output));
        }
        Ok(())
    }

    /// Closes the sinks and returns the most severe exit.
    fn finish(self, result: Result<(), CommandError>) -> Result<Exit, CommandError> {
        let context = self.context;
        let summary = self.sinks.summary();
        let stopped = summary.is_incomplete();
        let found = self.arguments.fail_on_error && summary.errors() > 0;
        let exits = [
            result.as_ref().err().map(|failure| failure.exit),
            self.input_failures.first().map(|error| error.exit),
            self.termination_signal
                .get()
                .map(|signal| Exit::Signal(*signal)),
            stopped.then_some(Exit::Incomplete),
            found.then_some(Exit::ProblemsFound),
        ];
        let exit = exits.into_iter().flatten().max().unwrap_or(Exit::Ok);
        let exit = self.sinks.finish(exit, &context.stderr, context.verbose);
        self.engine.close();
        for error in &self.input_failures {
            context.stderr.print_error(error);
        }
        result.map_err(|failure| match failure.exit {
            Exit::Output if !self.arguments.log.no_log => {
                failure.with_hint("the results are in the session log")
            }
            _ => CommandError { exit, ..failure },
        })?;
        Ok(exit)
    }
}

/// Ends a run without calls. Lines are answered by empty lists, documents and streams by nothing.
fn finish_without_calls(
    inputs: Vec<CommandInput>,
    arguments: &Arguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let mut answered = 0;
    for input in inputs {
        let recording = match input {
            CommandInput::Recording(recording) => *recording,
            CommandInput::Stream(mut stream) => {
                if let (_, Some(error)) = stream.read_to_end() {
                    return Err(files::stream_failure(error, stream.message_count()));
                }
                continue;
            }
            CommandInput::Follow(_) => continue,
        };
        let mut printer =
            AnswerPrinter::new(arguments.to.map(Into::into), recording.layout(), 0, None);
        for index in 0..recording.len() {
            let turn = recording.turn(index, arguments.input.all)?;
            answered += turn.answered_count;
            if turn.answered_count == 0 {
                printer.print_empty_list();
            }
        }
        printer.check_written()?;
    }
    context.stderr.print_note(match answered {
        0 => "the model made no tool calls",
        _ => "every call already has a result in the input; `--all` runs them anyway",
    });
    Ok(Exit::NoCalls)
}
