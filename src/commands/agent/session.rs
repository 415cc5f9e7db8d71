//! `toolq agent`: one agent by itself, from an input on stdin to its answer on stdout.

use std::io::{self, IsTerminal as _, Read as _};
use std::sync::{Arc, OnceLock};

use crate::args::{Agent as Arguments, ToAnswer};
use crate::commands::agent::answer;
use crate::commands::agent::answer::Given;
use crate::commands::agent::transcript::Story;
use crate::context::Context;
use crate::output::{Exit, Failure, Stderr};
use crate::session::log_request;
use crate::session::{
    Earlier, Intent, Observers, Signals, Warned, any_task, build_runtime, settings, tick,
    watch_stdout,
};
use toolq_core::answer::without_hint;
use toolq_core::check::{Checker, unasked};
use toolq_core::json::{Input, MAX_INPUT_BYTES};
use toolq_core::os::Clock;
use toolq_core::text::nearest;
use toolq_core::types::{Backing, Call, Checked, Tool, Tools, Verdict};
use toolq_engine::{Engine, EngineSettings};
use toolq_log::SessionLog;

/// Runs the agent of this name on the input.
///
/// # Errors
/// A wrong tools.yaml, no such agent, a wrong input, or a log that can't be used: then nothing ran. A stdout that takes
/// no more.
pub fn agent(arguments: &Arguments, context: &Context) -> Result<Exit, Failure> {
    let tools = Arc::new(context.load_tools()?);
    let agent = named(&tools, &arguments.name)?;
    let call = Call {
        turn: 0,
        position: 0,
        id: format!("toolq_{}", arguments.name),
        name: arguments.name.clone(),
        input: Ok(read_input()?),
        within: None,
    };
    let checker = Checker::new(Arc::clone(&tools));
    let checked = checker.call(call.clone());
    // What an agent takes that describes itself is not known yet.
    if !agent.is_unasked() {
        valid(&checked)?;
    }
    let runtime = build_runtime()?;
    let entered = runtime.enter();
    let signals = Signals::catch()
        .map_err(|error| Failure::usage(format!("signals can't be heard: {error}")))?;
    let (engine, story, earlier) = begin(arguments, context, (&tools, &checker), &checked)?;
    drop(entered);
    let mut work = Work {
        arguments,
        context,
        tools,
        checker,
        earlier,
        engine,
        story,
        given: Given::default(),
        ended_by: signals.ended_by(),
    };
    let ended = runtime.block_on(work.run(call, signals));
    let exit = work.finish(ended);
    // All is written and nothing runs: what is left there, such as a look-up of a name, is not waited for.
    runtime.shutdown_background();
    exit
}

/// Opens everything that is told of the run, and makes who runs it.
fn begin(
    arguments: &Arguments,
    context: &Context,
    (tools, checker): (&Arc<Tools>, &Checker),
    checked: &Checked,
) -> Result<(Engine, Story, Earlier), Failure> {
    let jobs = arguments.jobs.unwrap_or(tools.concurrency);
    let (mask, clock) = (Arc::new(context.mask(tools)), Clock::system());
    let watch = &arguments.watch;
    let mut observers = Observers::new(
        watch,
        arguments.log.file.as_deref(),
        context,
        (tools, jobs),
        &mask,
        clock.clone(),
    )?;
    let intent = Intent {
        log: &arguments.log,
        all: false,
        jobs,
        context,
        tools,
        checker,
        mask: &mask,
        inputs: &[],
        alone: Some(checked),
    };
    let log = log_request::begin(&intent, &clock)?.log;
    let task = log.as_ref().map_or_else(any_task, SessionLog::task);
    let earlier = log.as_ref().and_then(SessionLog::earlier);
    let earlier = Earlier::new(earlier, &intent, true);
    observers.record(log);
    let engine = Engine::new(EngineSettings {
        jobs,
        outputs: observers.outputs(),
        task,
        budgets: (&arguments.budgets).into(),
        memory: earlier.memory(),
        ..settings(tools, &mask, context)
    });
    let story = Story::new(observers, mask, earlier.memory());
    Ok((engine, story, earlier))
}

/// The agent's work from its first request to its end.
struct Work<'a> {
    arguments: &'a Arguments,
    context: &'a Context,
    tools: Arc<Tools>,
    checker: Checker,
    /// What the log says of the task that is resumed.
    earlier: Earlier,
    engine: Engine,
    story: Story,
    given: Given,
    /// The signal that ended it.
    ended_by: Arc<OnceLock<u8>>,
}

impl Work<'_> {
    async fn run(&mut self, call: Call, signals: Signals) -> Result<(), Failure> {
        let (control, screen) = (self.engine.control(), self.story.observers.screen());
        tokio::spawn(signals.obey(control.clone(), screen.clone()));
        tokio::spawn(watch_stdout(control));
        let ticking = screen.map(tick);
        let ended = self.answer(call).await;
        if let Some(ticking) = ticking {
            ticking.abort();
        }
        ended
    }

    /// Tools that describe themselves are asked first: the agent itself, and those that it may call.
    async fn answer(&mut self, call: Call) -> Result<(), Failure> {
        let call = [call];
        let unasked = unasked(&self.tools, self.earlier.open(&call));
        let screen = self.story.observers.screen();
        let mut sink = Warned::new(&mut self.story, &self.context.stderr, screen);
        self.engine.asking().ask(&unasked, &mut sink).await;
        let [call] = call;
        let mut checked = self.checker.call(call);
        valid(&checked)?;
        checked.past = self.earlier.past(&checked, false)?;
        let (story, given) = (&mut self.story, &mut self.given);
        self.engine.turn(0, vec![checked], story, given).await;
        Ok(())
    }

    /// Prints the answer and closes log and screen; the gravest of what happened is the exit.
    fn finish(self, ended: Result<(), Failure>) -> Result<Exit, Failure> {
        let Self {
            mut story, given, ..
        } = self;
        let to = self.arguments.to;
        story.observers.leave_screen();
        let ended = ended.and_then(|()| answer::print(&story, &given, to, &self.tools));
        let stopped = story.observers.summary().stopped();
        let exits = [
            ended.as_ref().err().map(|failure| failure.exit),
            self.ended_by.get().map(|signal| Exit::Signal(*signal)),
            stopped.then_some(Exit::Stopped),
            given.is_error().then_some(Exit::Found),
        ];
        let exit = exits.into_iter().flatten().max().unwrap_or(Exit::Ok);
        let stderr = &self.context.stderr;
        let exit = story.observers.finish(exit, stderr, self.context.verbose);
        self.engine.close();
        ended.map_err(|failure| Failure { exit, ..failure })?;
        match given.error() {
            Some(error) if to == ToAnswer::Text => {
                let error = without_hint(&error);
                let (first, rest) = error.split_once('\n').unwrap_or((error, ""));
                let exit = stderr.failure(&Failure::new(exit, first.trim_end_matches('.')));
                Stderr::details(rest);
                Ok(exit)
            }
            _ => Ok(exit),
        }
    }
}

/// The agent of this name.
fn named<'t>(tools: &'t Tools, name: &str) -> Result<&'t Arc<Tool>, Failure> {
    let is_agent = |tool: &&Arc<Tool>| matches!(tool.backing, Some(Backing::Agent(_)));
    let agents = tools.tools.iter().filter(is_agent);
    let known: Vec<&str> = agents.map(|tool| tool.name.as_str()).collect();
    match tools.get(name) {
        Some(tool) if known.contains(&name) => Ok(tool),
        other => {
            let message = match other {
                Some(_) => format!("{name} is a tool, but no agent"),
                None => format!("no agent is called {name}"),
            };
            let hint = match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean {near}?"),
                None if known.is_empty() => "the file has no tool with an `agent`".to_owned(),
                None => format!("there are {}", known.join(", ")),
            };
            Err(Failure::usage(message).with_hint(hint))
        }
    }
}

/// The input on stdin.
fn read_input() -> Result<Input, Failure> {
    let example = "pipe it in: `echo '{\"query\":\"…\"}' | toolq agent NAME`";
    if io::stdin().is_terminal() {
        let message = "stdin is a terminal, so there is no input";
        return Err(Failure::usage(message).with_hint(example));
    }
    let mut text = String::new();
    io::stdin()
        .take(MAX_INPUT_BYTES as u64 + 1)
        .read_to_string(&mut text)
        .map_err(|error| Failure::usage(format!("stdin can't be read: {error}")))?;
    Input::parse(&text).map_err(|fault| Failure::usage(fault).with_hint(example))
}

/// # Errors
/// Every problem of the input.
fn valid(checked: &Checked) -> Result<(), Failure> {
    let Verdict::Rejected(rejection) = &checked.verdict else {
        return Ok(());
    };
    let problems = rejection
        .details
        .iter()
        .map(|detail| match detail.path.as_str() {
            "" => detail.message.clone(),
            path => format!("{path}: {}", detail.message),
        });
    let problems: Vec<String> = problems.collect();
    Err(Failure::usage(format!(
        "the input is none for {}: {}",
        checked.call.name,
        problems.join("; ")
    )))
}
