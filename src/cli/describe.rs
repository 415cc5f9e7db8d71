//! Tools that describe themselves are asked to, all at the same time, once a run and before its first call. They are asked
//! as they are called: with their variables, folder, limits and time, and nothing of it is left running.

use std::sync::Arc;

use super::commands::run::{any_task, runtime};
use super::context::Context;
use super::failure::Failure;
use crate::execute::{Budgets, Delivery, Engine, EngineSettings, Resolver};
use crate::model::{
    Answer, Backing, Call, CallRef, Content, Effect, Event, Input, OnFailure, OutputKind, Refused,
    Safety, Said, Sink, Status, Tool, Tools,
};
use crate::validate::{Checker, MAX_DESCRIPTION, described};

/// The tools with what they said of themselves; those that said nothing of use know why, and people are told.
///
/// # Errors
/// There is no runtime for it.
pub fn ask(mut tools: Tools, context: &Context) -> Result<Tools, Failure> {
    let asked: Vec<usize> = (0..tools.tools.len())
        .filter(|index| tools.tools[*index].describe.is_some())
        .collect();
    if asked.is_empty() {
        return Ok(tools);
    }
    let askers = asked.iter().filter_map(|index| asker(&tools.tools[*index]));
    let askers = Tools {
        tools: askers.map(Arc::new).collect(),
        ..tools.clone()
    };
    for (index, said) in asked.into_iter().zip(answers(askers, context)?) {
        let tool = &tools.tools[index];
        let told = said.and_then(|printed| described(tool, &printed, &tools.dir));
        let tool = told.unwrap_or_else(|why| {
            let name = &tool.name;
            context.stderr.warning(&format!(
                "{name} could not describe itself, and none of its calls runs: {why}"
            ));
            silent(tool, why)
        });
        tools.tools[index] = Arc::new(tool);
    }
    Ok(tools)
}

/// The names of the tools that were not asked what they take.
pub fn not_asked(tools: &Tools) -> Vec<&str> {
    let tools = tools.tools.iter().filter(|tool| {
        let describe = tool.describe.as_ref();
        describe.is_some_and(|describe| describe.said == Said::NotAsked)
    });
    tools.map(|tool| tool.name.as_str()).collect()
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
        on_failure: OnFailure::Continue,
        pause_after_failures: 0,
        ..tool.clone()
    })
}

fn silent(tool: &Tool, why: String) -> Tool {
    let mut tool = tool.clone();
    if let Some(describe) = &mut tool.describe {
        describe.said = Said::Nothing(why);
    }
    tool
}

/// What each of `askers` printed, or why it printed nothing.
fn answers(askers: Tools, context: &Context) -> Result<Vec<Result<String, String>>, Failure> {
    let tools = Arc::new(askers);
    let calls = tools.tools.iter().enumerate().map(|(position, tool)| Call {
        turn: 0,
        position,
        id: format!("describe_{position}"),
        name: tool.name.clone(),
        input: Ok(Input::empty()),
        within: None,
    });
    let calls = calls.map(|call| Checker::new(Arc::clone(&tools)).call(call));
    let calls: Vec<_> = calls.collect();
    let runtime = runtime()?;
    let mut engine = Engine::new(EngineSettings {
        jobs: tools.concurrency,
        outputs: None,
        supervisor: Some("/proc/self/exe".into()),
        environment: Arc::clone(&context.environment),
        resolver: Resolver::system(),
        mask: Arc::new(context.mask(&tools)),
        task: any_task(),
        budgets: Budgets::default(),
        memory: None,
        tools,
    });
    let (mut cuts, mut printed) = (Cuts::default(), Printed::default());
    runtime.block_on(engine.turn(0, calls, &mut cuts, &mut printed));
    engine.close();
    let whole = printed.0.into_iter().enumerate().map(|(position, said)| {
        if cuts.0.contains(&position) {
            return Err(format!("it prints more than {} KiB", MAX_DESCRIPTION >> 10));
        }
        said
    });
    Ok(whole.collect())
}

/// Whose output was cut.
#[derive(Default)]
struct Cuts(Vec<usize>);

impl Sink for Cuts {
    fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
        for event in events {
            if let Event::Finished { call, outcome, .. } = event
                && outcome.captured().is_some_and(|captured| captured.cut > 0)
            {
                self.0.push(call.position);
            }
        }
        Ok(())
    }
}

/// What was answered, in the order of the tools.
#[derive(Default)]
struct Printed(Vec<Result<String, String>>);

impl Delivery for Printed {
    fn deliver(&mut self, _: &CallRef, answer: Answer, _: &mut dyn Sink) {
        self.0.push(match answer.content {
            Content::Text(text) if answer.is_error => Err(without_hint(&text)),
            Content::Text(text) => Ok(text),
            Content::Blocks(_) => Err("it prints no text".to_owned()),
        });
    }

    fn drained(&mut self, _: &mut dyn Sink) {}
}

/// The text of an error on one line, without what is said to a model only.
fn without_hint(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("Hint: "));
    lines.collect::<Vec<_>>().join(" ")
}
