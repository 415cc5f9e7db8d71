//! `toolq agent`: runs one agent on an input from stdin and prints its answer.

use std::io::{self, IsTerminal as _, Read as _};
use std::sync::{Arc, OnceLock};

use crate::args::{AgentArguments as Arguments, AnswerFormat};
use crate::commands::agent::answer;
use crate::commands::agent::answer::AgentAnswer;
use crate::commands::agent::transcript::AgentTranscript;
use crate::context::CommandContext;
use crate::output::{CommandError, Exit, StderrWriter};
use crate::session::log_request;
use crate::session::{
    DescribeWarningSink, LogRequest, ResumeDecisions, RunSinks, SignalHandler, build_runtime,
    default_engine_settings, halt_when_stdout_closes, spawn_ticker,
};
use toolq_core::answer::strip_hint;
use toolq_core::check::{CallChecker, undescribed_tools};
use toolq_core::json::{Input, MAX_INPUT_BYTES};
use toolq_core::os::Clock;
use toolq_core::text::suggest_name;
use toolq_core::types::{Backing, Call, CheckedCall, Tool, ToolsConfig, Verdict};
use toolq_engine::{Engine, EngineSettings, random_task_id};
use toolq_log::SessionLog;

/// Runs the named agent on the input.
///
/// # Errors
/// tools.yaml or the input is invalid, there is no such agent, or the log can't be used: then nothing ran. Or stdout
/// can't be written.
pub fn run_agent(arguments: &Arguments, context: &CommandContext) -> Result<Exit, CommandError> {
    let tools = Arc::new(context.load_tools()?);
    let agent = find_agent(&tools, &arguments.name)?;
    let call = Call {
        turn: 0,
        position: 0,
        id: format!("toolq_{}", arguments.name),
        name: arguments.name.clone(),
        input: Ok(read_input()?),
        parent: None,
    };
    let checker = CallChecker::new(Arc::clone(&tools));
    let checked = checker.check_call(call.clone());
    // The schema of an agent with a `describe` program isn't known yet.
    if !agent.needs_describe() {
        check_accepted(&checked)?;
    }
    let runtime = build_runtime()?;
    let entered = runtime.enter();
    let signals = SignalHandler::install().map_err(|error| {
        CommandError::usage(format!("failed to install signal handlers: {error}"))
    })?;
    let (engine, transcript, resume) = begin_run(arguments, context, (&tools, &checker), &checked)?;
    drop(entered);
    let mut session = AgentSession {
        arguments,
        context,
        tools,
        checker,
        resume,
        engine,
        transcript,
        answer: AgentAnswer::default(),
        termination_signal: signals.termination_signal(),
    };
    let result = runtime.block_on(session.run(call, signals));
    let exit = session.finish(result);
    // Everything is written and no call is running; don't wait for leftover work such as a DNS lookup.
    runtime.shutdown_background();
    exit
}

/// Opens the sinks and the log, and creates the engine.
fn begin_run(
    arguments: &Arguments,
    context: &CommandContext,
    (tools, checker): (&Arc<ToolsConfig>, &CallChecker),
    checked: &CheckedCall,
) -> Result<(Engine, AgentTranscript, ResumeDecisions), CommandError> {
    let jobs = arguments.jobs.unwrap_or(tools.concurrency);
    let (mask, clock) = (Arc::new(context.build_mask(tools)), Clock::system());
    let watch = &arguments.watch;
    let mut sinks = RunSinks::new(
        watch,
        arguments.log.file.as_deref(),
        context,
        (tools, jobs),
        &mask,
        clock.clone(),
    )?;
    let request = LogRequest {
        flags: &arguments.log,
        include_answered: false,
        jobs,
        context,
        tools,
        checker,
        mask: &mask,
        inputs: &[],
        single_call: Some(checked),
    };
    let log = log_request::begin_log(&request, &clock)?.log;
    let task = log
        .as_ref()
        .map_or_else(random_task_id, SessionLog::task_id);
    let history = log.as_ref().and_then(SessionLog::history);
    let earlier = ResumeDecisions::new(history, &request, true);
    sinks.attach_log(log);
    let engine = Engine::new(EngineSettings {
        jobs,
        output_dir: sinks.output_dir(),
        task_id: task,
        budget_limits: (&arguments.budgets).into(),
        agent_history: earlier.agent_history(),
        ..default_engine_settings(tools, &mask, context)
    });
    let transcript = AgentTranscript::new(sinks, mask, earlier.agent_history());
    Ok((engine, transcript, earlier))
}

/// The state of an agent's run.
struct AgentSession<'a> {
    arguments: &'a Arguments,
    context: &'a CommandContext,
    tools: Arc<ToolsConfig>,
    checker: CallChecker,
    /// What the log says about the task being resumed.
    resume: ResumeDecisions,
    engine: Engine,
    transcript: AgentTranscript,
    answer: AgentAnswer,
    /// The signal that stopped the run.
    termination_signal: Arc<OnceLock<u8>>,
}

impl AgentSession<'_> {
    async fn run(&mut self, call: Call, signals: SignalHandler) -> Result<(), CommandError> {
        let (control, screen) = (self.engine.control(), self.transcript.sinks.screen());
        tokio::spawn(signals.handle_signals(control.clone(), screen.clone()));
        tokio::spawn(halt_when_stdout_closes(control));
        let ticking = screen.map(spawn_ticker);
        let result = self.run_call(call).await;
        if let Some(ticking) = ticking {
            ticking.abort();
        }
        result
    }

    /// Runs the `describe` programs of the agent and of the tools it may call, then the agent.
    async fn run_call(&mut self, call: Call) -> Result<(), CommandError> {
        let call = [call];
        let undescribed = undescribed_tools(&self.tools, self.resume.open_calls(&call));
        let screen = self.transcript.sinks.screen();
        let mut sink = DescribeWarningSink::new(&mut self.transcript, &self.context.stderr, screen);
        self.engine
            .schema_discovery()
            .discover(&undescribed, &mut sink)
            .await;
        let [call] = call;
        let mut checked = self.checker.check_call(call);
        check_accepted(&checked)?;
        checked.resume_state = self.resume.resume_state(&checked, false)?;
        let (transcript, agent_answer) = (&mut self.transcript, &mut self.answer);
        self.engine
            .run_turn(0, vec![checked], transcript, agent_answer)
            .await;
        Ok(())
    }

    /// Prints the answer, closes the sinks, and returns the most severe exit.
    fn finish(self, result: Result<(), CommandError>) -> Result<Exit, CommandError> {
        let Self {
            mut transcript,
            answer: agent_answer,
            ..
        } = self;
        let to = self.arguments.to;
        transcript.sinks.close_screen();
        let result =
            result.and_then(|()| answer::print_answer(&transcript, &agent_answer, to, &self.tools));
        let stopped = transcript.sinks.summary().is_incomplete();
        let exits = [
            result.as_ref().err().map(|failure| failure.exit),
            self.termination_signal
                .get()
                .map(|signal| Exit::Signal(*signal)),
            stopped.then_some(Exit::Incomplete),
            agent_answer.is_error().then_some(Exit::ProblemsFound),
        ];
        let exit = exits.into_iter().flatten().max().unwrap_or(Exit::Ok);
        let stderr = &self.context.stderr;
        let exit = transcript.sinks.finish(exit, stderr, self.context.verbose);
        self.engine.close();
        result.map_err(|failure| CommandError { exit, ..failure })?;
        match agent_answer.error_text() {
            Some(error) if to == AnswerFormat::Text => {
                let error = strip_hint(&error);
                let (first, rest) = error.split_once('\n').unwrap_or((error, ""));
                let exit =
                    stderr.print_error(&CommandError::new(exit, first.trim_end_matches('.')));
                StderrWriter::print_details(rest);
                Ok(exit)
            }
            _ => Ok(exit),
        }
    }
}

/// Finds the agent with this name.
fn find_agent<'t>(tools: &'t ToolsConfig, name: &str) -> Result<&'t Arc<Tool>, CommandError> {
    let is_agent = |tool: &&Arc<Tool>| matches!(tool.backing, Some(Backing::Agent(_)));
    let agents = tools.tools.iter().filter(is_agent);
    let known: Vec<&str> = agents.map(|tool| tool.name.as_str()).collect();
    match tools.get(name) {
        Some(tool) if known.contains(&name) => Ok(tool),
        other => {
            let message = match other {
                Some(_) => format!("{name} is a tool, but not an agent"),
                None => format!("no agent is called {name}"),
            };
            let hint = match suggest_name(name, known.iter().copied()) {
                Some(near) => format!("did you mean {near}?"),
                None if known.is_empty() => "tools.yaml has no tool with an `agent`".to_owned(),
                None => format!("known: {}", known.join(", ")),
            };
            Err(CommandError::usage(message).with_hint(hint))
        }
    }
}

/// Reads the input from stdin.
fn read_input() -> Result<Input, CommandError> {
    let example = "pipe it in: `echo '{\"query\":\"…\"}' | toolq agent NAME`";
    if io::stdin().is_terminal() {
        let message = "no input: stdin is a terminal";
        return Err(CommandError::usage(message).with_hint(example));
    }
    let mut text = String::new();
    io::stdin()
        .take(MAX_INPUT_BYTES as u64 + 1)
        .read_to_string(&mut text)
        .map_err(|error| CommandError::usage(format!("stdin can't be read: {error}")))?;
    Input::parse(&text).map_err(|fault| CommandError::usage(fault).with_hint(example))
}

/// Returns an error with every problem of the input if the call is rejected.
fn check_accepted(checked: &CheckedCall) -> Result<(), CommandError> {
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
    Err(CommandError::usage(format!(
        "invalid input for {}: {}",
        checked.call.name,
        problems.join("; ")
    )))
}
