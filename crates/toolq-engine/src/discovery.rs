//! Tools that describe themselves are asked what they take: as they are called, with their variables, folder, limits and
//! time, and nothing of it is left running. Who asks goes on when all have answered, and finds what they said with the
//! tools.

use std::path::PathBuf;
use std::sync::Arc;

use crate::attempt::Runner;
use crate::control::Control;
use crate::engine::Engine;
use crate::run_budget::Spending;
use crate::scheduler::{Pauses, Slots};
use crate::settings::{Delivery, EngineSettings};
use crate::state::EngineState;
use toolq_core::check::{Checker, MAX_DESCRIPTION, described};
use toolq_core::json::Input;
use toolq_core::types::{
    Answer, Backing, Call, CallRef, Content, Effect, Event, OnFailure, Outcome, OutputKind,
    Refused, Safety, Said, Sink, Status, Tool, Tools,
};

/// Asks tools of an engine what they take. Its places, its reins and its time are shared; other budgets are of calls.
pub struct Asking {
    settings: EngineSettings,
    runner: Arc<dyn Runner>,
    spending: Spending,
    control: Control,
    slots: Slots,
}

impl Engine {
    /// Asks the tools of this engine, also while it runs a turn.
    pub fn asking(&self) -> Asking {
        Asking {
            settings: self.state.settings.clone(),
            runner: Arc::clone(&self.state.runner),
            spending: self.state.spending.of_time(),
            control: self.state.control.clone(),
            slots: self.state.slots.clone(),
        }
    }
}

impl Asking {
    /// Asks `tools`, all at the same time, and tells `sink` of it: a tool of which it takes no start is not asked. What
    /// they said stands with them; nothing does where the run is ended first, and then none of their calls runs.
    pub async fn ask(&self, tools: &[Arc<Tool>], sink: &mut dyn Sink) {
        if tools.is_empty() {
            return;
        }
        let askers = tools.iter().filter_map(|tool| asker(tool)).map(Arc::new);
        let askers = Arc::new(Tools {
            tools: askers.collect(),
            ..(*self.settings.tools).clone()
        });
        let checker = Checker::new(Arc::clone(&askers));
        let calls = tools.iter().enumerate().map(|(position, tool)| Call {
            turn: 0,
            position,
            id: format!("describe_{}", tool.name),
            name: tool.name.clone(),
            input: Ok(Input::empty()),
            within: None,
        });
        let calls = calls.map(|call| checker.call(call)).collect();
        let mut answers = Answers {
            tools,
            dir: self.settings.tools.dir.clone(),
            sink,
        };
        let mut engine = self.engine(askers);
        engine.turn(0, calls, &mut answers, &mut Nobody).await;
    }

    fn engine(&self, tools: Arc<Tools>) -> Engine {
        Engine {
            state: EngineState {
                settings: EngineSettings {
                    tools,
                    memory: None,
                    ..self.settings.clone()
                },
                runner: Arc::clone(&self.runner),
                pauses: Pauses::default(),
                spending: self.spending.clone(),
                control: self.control.clone(),
                slots: self.slots.clone(),
                around: None,
            },
        }
    }
}

/// A tool that does nothing but describe `tool`.
fn asker(tool: &Tool) -> Option<Tool> {
    let describe = tool.describe.as_ref()?;
    Some(Tool {
        backing: Some(Backing::Command(describe.command.clone())),
        describe: None,
        probe: None,
        safety: Safety::Declared(true),
        effect: Effect::Read,
        paths: Vec::new(),
        status: Status::default(),
        output: OutputKind::Text,
        max_output: MAX_DESCRIPTION,
        max_saved: 0,
        on_failure: OnFailure::Continue,
        pause_after_failures: None,
        ..tool.clone()
    })
}

/// Reads what the tools answer, and tells of it in the place of calls.
struct Answers<'a> {
    tools: &'a [Arc<Tool>],
    dir: PathBuf,
    sink: &'a mut dyn Sink,
}

impl Answers<'_> {
    fn read(&self, tool: &Tool, outcome: &Outcome, answer: &Answer) {
        let Some(describe) = &tool.describe else {
            return;
        };
        // It was ended together with the run, and did not fail by itself.
        if matches!(
            outcome,
            Outcome::Interrupted { .. } | Outcome::NotExecuted(_)
        ) {
            return;
        }
        let said = match printed(outcome, answer).and_then(|printed| described(&printed, &self.dir))
        {
            Ok(description) => Said::Well(description),
            Err(why) => Said::Nothing(why),
        };
        // It is asked once.
        let _ = describe.said.set(said);
    }
}

impl Sink for Answers<'_> {
    fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
        let tools = self.tools;
        let tool = |call: &CallRef| tools.get(call.position).map(|tool| &**tool);
        let mut told = Vec::new();
        for event in events {
            match event {
                Event::Started {
                    call, attempt: 1, ..
                } => {
                    told.extend(tool(call).map(|tool| Event::Describing { tool }));
                }
                Event::Finished {
                    call,
                    outcome,
                    answer,
                    duration,
                    attempts,
                    ..
                } if *attempts > 0 => {
                    let Some(tool) = tool(call) else {
                        continue;
                    };
                    self.read(tool, outcome, answer);
                    told.push(Event::Described {
                        tool,
                        outcome,
                        duration: *duration,
                        attempts: *attempts,
                    });
                }
                _ => {}
            }
        }
        if told.is_empty() {
            return Ok(());
        }
        self.sink.tell(&told)
    }

    fn settle(&mut self) -> Result<(), Refused> {
        self.sink.settle()
    }
}

/// What a tool printed.
///
/// # Errors
/// It did not end well, or printed too much.
fn printed(outcome: &Outcome, answer: &Answer) -> Result<String, String> {
    if outcome.captured().is_some_and(|captured| captured.cut > 0) {
        return Err(format!("it prints more than {} KiB", MAX_DESCRIPTION >> 10));
    }
    match &answer.content {
        Content::Text(text) if answer.is_error => Err(without_hint(text)),
        Content::Text(text) => Ok(text.clone()),
        Content::Blocks(_) => Err("it prints no text".to_owned()),
    }
}

/// The text of an error on one line, without what is said to a model only.
fn without_hint(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("Hint: "));
    lines.collect::<Vec<_>>().join(" ")
}

/// The tools' answers stand with the tools.
struct Nobody;

impl Delivery for Nobody {
    fn deliver(&mut self, _: &CallRef, _: Answer, _: &mut dyn Sink) {}

    fn drained(&mut self, _: &mut dyn Sink) {}
}
