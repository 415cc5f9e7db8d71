//! `toolq agent`: one agent by itself, from an input on stdin to its answer on stdout.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Read as _};
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use super::run::{any_task, runtime, tick, watch_stdout};
use crate::cli::arguments::{Agent as Arguments, ToAnswer};
use crate::cli::context::Context;
use crate::cli::describe;
use crate::cli::earlier::Earlier;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::observers::Observers;
use crate::cli::session_log::{self, Intent};
use crate::cli::signals::Signals;
use crate::cli::stdout;
use crate::execute::{Delivery, Engine, EngineSettings, Resolver};
use crate::model::{
    AgentUse, Answer, Backing, Call, CallRef, Checked, Clock, Content, Event, Input,
    MAX_INPUT_BYTES, Mask, Memory, Refused, Sink, Tool, Tools, Usage, Verdict, pretty, usd,
};
use crate::parse::nearest;
use crate::record::SessionLog;
use crate::validate::Checker;

/// Runs the agent of this name on the input.
///
/// # Errors
/// A wrong tools.yaml, no such agent, a wrong input, or a log that can't be used: then nothing ran. A stdout that takes
/// no more.
pub fn agent(arguments: &Arguments, context: &Context) -> Result<Exit, Failure> {
    let tools = context.load_tools()?;
    named(&tools, &arguments.name)?;
    let tools = Arc::new(describe::ask(tools, context)?);
    let call = Call {
        turn: 0,
        position: 0,
        id: format!("toolq_{}", arguments.name),
        name: arguments.name.clone(),
        input: Ok(read_input()?),
        within: None,
    };
    let checker = Checker::new(Arc::clone(&tools));
    let mut checked = checker.call(call);
    valid(&checked)?;
    let runtime = runtime()?;
    let entered = runtime.enter();
    let signals = Signals::catch()
        .map_err(|error| Failure::usage(format!("signals can't be heard: {error}")))?;
    let ended_by = signals.ended_by();
    let mask = Arc::new(context.mask(&tools));
    let like_run = arguments.as_run();
    let clock = Clock::system();
    let mut observers = Observers::new(&like_run, context, &tools, &mask, clock.clone())?;
    let intent = Intent {
        arguments: &like_run,
        context,
        tools: &tools,
        checker: &checker,
        mask: &mask,
        inputs: &[],
        alone: Some(&checked),
    };
    let log = session_log::begin(&intent, &clock)?.log;
    let task = log.as_ref().map_or_else(any_task, SessionLog::task);
    let earlier = log.as_ref().and_then(SessionLog::earlier);
    let earlier = Earlier::new(earlier, &intent, true);
    checked.past = earlier.past(&checked, false)?;
    observers.record(log);
    let mut engine = Engine::new(EngineSettings {
        tools: Arc::clone(&tools),
        jobs: arguments.jobs.unwrap_or(tools.concurrency),
        outputs: observers.outputs(),
        supervisor: Some("/proc/self/exe".into()),
        environment: Arc::clone(&context.environment),
        resolver: Resolver::system(),
        mask: Arc::clone(&mask),
        task,
        budgets: (&arguments.budgets).into(),
        memory: earlier.memory(),
    });
    drop(entered);
    let (control, screen) = (engine.control(), observers.screen());
    let mut story = Story::new(observers, mask, earlier.memory());
    let mut outcome = Given::default();
    runtime.block_on(async {
        tokio::spawn(signals.obey(control.clone(), screen.clone()));
        tokio::spawn(watch_stdout(control));
        let ticking = screen.map(tick);
        engine
            .turn(0, vec![checked], &mut story, &mut outcome)
            .await;
        if let Some(ticking) = ticking {
            ticking.abort();
        }
    });
    let printed = print(&story, &outcome, arguments.to, &tools);
    let stopped = story.observers.summary().stopped();
    let failed = outcome.0.as_ref().is_none_or(|answer| answer.is_error);
    let exits = [
        printed.as_ref().err().map(|_| Exit::Output),
        ended_by.get().map(|signal| Exit::Signal(*signal)),
        stopped.then_some(Exit::Stopped),
        failed.then_some(Exit::Found),
    ];
    let exit = exits.into_iter().flatten().max().unwrap_or(Exit::Ok);
    let exit = story
        .observers
        .finish(exit, &context.stderr, context.verbose);
    printed?;
    if let (Some(answer), ToAnswer::Text) = (&outcome.0, arguments.to)
        && answer.is_error
    {
        return Ok(context.stderr.failure(&Failure::new(exit, text(answer))));
    }
    Ok(exit)
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

/// Everybody who is told, and what is kept of the agent's story for its end.
struct Story {
    observers: Observers,
    mask: Arc<Mask>,
    memory: Option<Arc<dyn Memory>>,
    conversation: Vec<Box<RawValue>>,
    /// How the call ended, in one word.
    status: &'static str,
    duration_ms: u64,
    used: AgentUse,
    /// The same with what the agents used that it called.
    total: BTreeMap<String, Usage>,
}

impl Story {
    fn new(observers: Observers, mask: Arc<Mask>, memory: Option<Arc<dyn Memory>>) -> Self {
        Self {
            observers,
            mask,
            memory,
            conversation: Vec::new(),
            status: "",
            duration_ms: 0,
            used: AgentUse::default(),
            total: BTreeMap::new(),
        }
    }

    fn hear(&mut self, event: &Event<'_>) {
        match event {
            Event::AgentMessage { call, message, .. } if call.within.is_none() => {
                // What is sent may hold what nobody else may see.
                let masked = self.mask.json(message.get()).into_owned();
                self.conversation.extend(RawValue::from_string(masked));
            }
            Event::Finished {
                call,
                outcome,
                duration,
                agent: Some(agent),
                ..
            } => {
                // Of what is told from the log, what the agents used that it called is not told apart.
                let memory = self.memory.as_ref().filter(|_| outcome.is_recalled());
                let taken = memory.map_or_else(
                    || agent.usage.clone().into_iter().collect(),
                    |memory| memory.taken(call),
                );
                for (model, usage) in taken {
                    *self.total.entry(model).or_default() += usage;
                }
                if call.within.is_none() {
                    self.used = (*agent).clone();
                    self.status = outcome.status();
                    self.duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
                }
            }
            _ => {}
        }
    }
}

impl Sink for Story {
    fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
        for event in events {
            self.hear(event);
        }
        self.observers.tell(events)
    }

    fn settle(&mut self) -> Result<(), Refused> {
        self.observers.settle()
    }
}

/// The answer.
#[derive(Default)]
struct Given(Option<Answer>);

impl Delivery for Given {
    fn deliver(&mut self, _: &CallRef, answer: Answer, sink: &mut dyn Sink) {
        // What the log refuses it says itself at the end.
        let _ = sink.settle();
        self.0 = Some(answer);
    }

    fn drained(&mut self, _: &mut dyn Sink) {}
}

fn text(answer: &Answer) -> String {
    match &answer.content {
        Content::Text(text) => text.clone(),
        Content::Blocks(blocks) => {
            let blocks: Vec<&str> = blocks.iter().map(|block| block.get()).collect();
            format!("[{}]", blocks.join(","))
        }
    }
}

/// `--to json`.
#[derive(Serialize)]
struct Report<'a> {
    text: String,
    is_error: bool,
    status: &'a str,
    agent_name: &'a str,
    turns_used: u64,
    tokens_used: u64,
    tool_calls_made: u64,
    corrections: u64,
    /// By model, with what the agents used that it called.
    usage: &'a BTreeMap<String, Usage>,
    /// None where a price is not known.
    estimated_cost_usd: Option<Box<RawValue>>,
    duration_ms: u64,
}

fn print(story: &Story, given: &Given, to: ToAnswer, tools: &Tools) -> Result<(), Failure> {
    let Some(answer) = &given.0 else {
        return Ok(());
    };
    match to {
        ToAnswer::Text if answer.is_error => Ok(()),
        ToAnswer::Text => Ok(stdout::line(&text(answer))?),
        ToAnswer::Messages => json(&story.conversation),
        ToAnswer::Json => json(&Report {
            text: text(answer),
            is_error: answer.is_error,
            status: story.status,
            agent_name: &story.used.agent_name,
            turns_used: story.used.turns,
            tokens_used: story.used.tokens(),
            tool_calls_made: story.used.calls,
            corrections: story.used.corrections,
            usage: &story.total,
            estimated_cost_usd: cost(story, tools),
            duration_ms: story.duration_ms,
        }),
    }
}

fn json(value: &impl Serialize) -> Result<(), Failure> {
    // Texts, numbers and JSON: there is nothing in it that JSON has no form for.
    let compact = serde_json::to_string(value).unwrap_or_default();
    let line = if stdout::is_terminal() {
        pretty(&compact)
    } else {
        compact
    };
    Ok(stdout::line(&line)?)
}

/// What all of it cost, as a JSON number.
fn cost(story: &Story, tools: &Tools) -> Option<Box<RawValue>> {
    let parts = story
        .total
        .iter()
        .map(|(model, usage)| tools.prices.cost(model, usage));
    let sum = parts.sum::<Option<u128>>()?;
    RawValue::from_string(usd(sum)).ok()
}
