//! `toolq run`: answers the calls. Reads what is no stream to its end, waits until something is asked, opens the log, and
//! hands turn after turn to the engine.

use std::sync::{Arc, OnceLock};

use crate::args::Run as Arguments;
use crate::commands::run::streaming;
use crate::context::Context;
use crate::input::Incoming;
use crate::input::files;
use crate::output::stdout;
use crate::output::{Exit, Failure, Printer};
use crate::session::log_request;
use crate::session::{
    BegunLog, Earlier, Intent, Observers, Signals, Warned, any_task, build_runtime, settings, tick,
    watch_stdout,
};
use toolq_core::check::{Checker, unasked};
use toolq_core::os::Clock;
use toolq_core::transcript::{Recording, Source};
use toolq_core::types::{Call, Checked, Halt, Layout, Tools, Turn};
use toolq_engine::{Asking, Engine, EngineSettings};
use toolq_log::SessionLog;

/// Answers every call of every input.
///
/// # Errors
/// A wrong tools.yaml or input, or a log that can't be used: then nothing ran. A stdout that takes no more: then the
/// results are in the log.
pub fn run(arguments: &Arguments, context: &Context) -> Result<Exit, Failure> {
    stdout::check()?;
    let tools = context.load_tools()?;
    let mut inputs = if arguments.follow {
        files::follow(&arguments.input)?
    } else {
        files::open(&arguments.input, Source::digested)?
    };
    if !streaming::asks(&mut inputs, arguments)? {
        return nothing_asked(inputs, arguments, context);
    }
    let tools = Arc::new(tools);
    let jobs = arguments.input.jobs.unwrap_or(tools.concurrency);
    let runtime = build_runtime()?;
    let entered = runtime.enter();
    // Before the log is begun: from then on it must be closed.
    let signals = Signals::catch()
        .map_err(|error| Failure::usage(format!("signals can't be heard: {error}")))?;
    let mask = Arc::new(context.mask(&tools));
    let checker = Checker::new(Arc::clone(&tools));
    let clock = Clock::system();
    let mut observers = Observers::new(
        &arguments.watch,
        arguments.log.file.as_deref(),
        context,
        (&tools, jobs),
        &mask,
        clock.clone(),
    )?;
    let intent = Intent {
        log: &arguments.log,
        all: arguments.input.all,
        jobs,
        context,
        tools: &tools,
        checker: &checker,
        mask: &mask,
        inputs: &inputs,
        alone: None,
    };
    let BegunLog { log, turn } = log_request::begin(&intent, &clock)?;
    let task = log.as_ref().map_or_else(any_task, SessionLog::task);
    let earlier = log.as_ref().and_then(SessionLog::earlier);
    let earlier = Earlier::new(earlier, &intent, turn.is_some());
    observers.record(log);
    let engine = Engine::new(EngineSettings {
        jobs,
        outputs: observers.outputs(),
        task,
        budgets: (&arguments.budgets).into(),
        memory: earlier.memory(),
        ..settings(&tools, &mask, context)
    });
    let mut session = Session {
        arguments,
        context,
        tools,
        asking: engine.asking(),
        checker,
        earlier,
        compared: turn,
        engine,
        observers,
        turns: 0,
        broken: Vec::new(),
        ended_by: signals.ended_by(),
    };
    drop(entered);
    let ended = runtime.block_on(session.run(inputs, signals));
    let exit = session.finish(ended);
    // All is written and nothing runs: what is left there, such as a look-up of a name, is not waited for.
    runtime.shutdown_background();
    exit
}

/// A run from its first turn to its end.
pub(crate) struct Session<'a> {
    pub(crate) arguments: &'a Arguments,
    pub(crate) context: &'a Context,
    pub(crate) tools: Arc<Tools>,
    /// Asks tools that describe themselves, when a call of theirs comes.
    pub(crate) asking: Asking,
    pub(crate) checker: Checker,
    /// What the log says of the task that is resumed.
    pub(crate) earlier: Earlier,
    /// The only turn of the input, where it was read already.
    compared: Option<Turn>,
    pub(crate) engine: Engine,
    pub(crate) observers: Observers,
    /// Turns of the inputs before this one.
    pub(crate) turns: usize,
    /// Why inputs broke off.
    broken: Vec<Failure>,
    /// The signal that ended it.
    ended_by: Arc<OnceLock<u8>>,
}

impl Session<'_> {
    /// Answers everything. What ends the run early ends what runs; the answers say so.
    async fn run(&mut self, inputs: Vec<Incoming>, signals: Signals) -> Result<(), Failure> {
        let (control, screen) = (self.engine.control(), self.observers.screen());
        // Both go on to the end of the program: it may be ended while it closes the log, too.
        tokio::spawn(signals.obey(control.clone(), screen.clone()));
        tokio::spawn(watch_stdout(control));
        let ticking = screen.map(tick);
        let ended = self.answer(inputs).await;
        if let Some(ticking) = ticking {
            ticking.abort();
        }
        ended
    }

    /// An input that breaks off ends nothing but itself.
    async fn answer(&mut self, inputs: Vec<Incoming>) -> Result<(), Failure> {
        for input in inputs {
            let answered = match input {
                Incoming::Recording(recording) => self.answer_one(&recording).await,
                Incoming::Stream(live) => self.answer_stream(*live).await,
                Incoming::Lines(lines) => self.answer_lines(*lines).await,
            };
            match answered {
                Err(broken) if broken.exit == Exit::Stopped => self.broken.push(broken),
                answered => answered?,
            }
        }
        Ok(())
    }

    pub(crate) async fn answer_one(&mut self, recording: &Recording) -> Result<(), Failure> {
        let all = self.arguments.input.all;
        let open = recording.open_turns(all);
        let mut printer = self.printer(recording.layout(), open);
        for index in 0..recording.len() {
            let turn = match self.compared.take() {
                Some(turn) => turn,
                None => recording.turn(index, all)?.numbered(self.turns + index),
            };
            match (turn.calls.is_empty(), turn.answered) {
                (true, 0) => printer.nothing_asked(),
                (true, _) => {}
                (false, _) => {
                    printer.begin(turn.form);
                    self.describe(&turn.calls).await;
                    let (number, calls) = (turn.number, self.checked(turn)?);
                    self.engine
                        .turn(number, calls, &mut self.observers, &mut printer)
                        .await;
                }
            }
            self.written(&mut printer)?;
        }
        self.turns += recording.len();
        Ok(())
    }

    /// Asks the tools what they take that these calls need and that were not asked yet.
    async fn describe(&mut self, calls: &[Call]) {
        let unasked = unasked(&self.tools, self.earlier.open(calls));
        let screen = self.observers.screen();
        let mut sink = Warned::new(&mut self.observers, &self.context.stderr, screen);
        self.asking.ask(&unasked, &mut sink).await;
    }

    /// The calls of a turn, each with its verdict and its past.
    fn checked(&self, turn: Turn) -> Result<Vec<Checked>, Failure> {
        let started = turn.started.clone();
        let mut calls = self.checker.turn(turn);
        for checked in &mut calls {
            let known_from_input = started.contains(&checked.call.position);
            checked.past = self.earlier.past(checked, known_from_input)?;
        }
        Ok(calls)
    }

    /// For an input of `layout` with so many turns.
    pub(crate) fn printer(&self, layout: Layout, turns: usize) -> Printer {
        let to = self.arguments.to.map(Into::into);
        let printer = Printer::new(to, layout, turns, self.observers.screen());
        let printer = printer.ending(self.engine.control());
        if self.arguments.follow {
            return printer.unfolded();
        }
        printer
    }

    /// Looks whether what was printed could be written.
    pub(crate) fn written(&self, printer: &mut Printer) -> Result<(), Failure> {
        printer.check()?;
        if self.engine.control().halted() == Some(Halt::OutputLost) {
            return Err(Failure::said(Exit::Output));
        }
        Ok(())
    }

    /// Closes log and screen; the gravest of what happened is the exit.
    fn finish(self, ended: Result<(), Failure>) -> Result<Exit, Failure> {
        let context = self.context;
        let summary = self.observers.summary();
        let stopped = summary.stopped();
        let found = self.arguments.fail_on_error && summary.errors() > 0;
        let exits = [
            ended.as_ref().err().map(|failure| failure.exit),
            self.broken.first().map(|broken| broken.exit),
            self.ended_by.get().map(|signal| Exit::Signal(*signal)),
            stopped.then_some(Exit::Stopped),
            found.then_some(Exit::Found),
        ];
        let exit = exits.into_iter().flatten().max().unwrap_or(Exit::Ok);
        let exit = self
            .observers
            .finish(exit, &context.stderr, context.verbose);
        self.engine.close();
        for broken in &self.broken {
            context.stderr.failure(broken);
        }
        ended.map_err(|failure| match failure.exit {
            Exit::Output if !self.arguments.log.no_log => {
                failure.with_hint("the results are in the session log")
            }
            _ => Failure { exit, ..failure },
        })?;
        Ok(exit)
    }
}

/// There was no call to answer: lines get their empty lists, documents and streams nothing.
fn nothing_asked(
    inputs: Vec<Incoming>,
    arguments: &Arguments,
    context: &Context,
) -> Result<Exit, Failure> {
    let mut answered = 0;
    for input in inputs {
        let recording = match input {
            Incoming::Recording(recording) => *recording,
            Incoming::Stream(mut live) => {
                if let (_, Some(error)) = live.whole() {
                    return Err(files::broken(error, live.messages()));
                }
                continue;
            }
            Incoming::Lines(_) => continue,
        };
        let mut printer = Printer::new(arguments.to.map(Into::into), recording.layout(), 0, None);
        for index in 0..recording.len() {
            let turn = recording.turn(index, arguments.input.all)?;
            answered += turn.answered;
            if turn.answered == 0 {
                printer.nothing_asked();
            }
        }
        printer.check()?;
    }
    context.stderr.note(match answered {
        0 => "the model asked for nothing",
        _ => "every call has its result in the input; `--all` answers them again",
    });
    Ok(Exit::NothingAsked)
}
