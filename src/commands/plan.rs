//! `toolq plan`: what would run, in which batches, and why. Runs nothing, opens no connection, writes no log.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::args::{Plan as Arguments, PlanFormat};
use crate::context::Context;
use crate::input::Incoming;
use crate::input::files;
use crate::output::stdout;
use crate::output::{Exit, Failure};
use crate::session::Describer;
use redact::Mask;
use toolq_core::check::{Checker, unasked};
use toolq_core::plan::{Look, MERMAID_HEADER, Plan, plan_json, plan_mermaid, plan_text};
use toolq_core::types::{Call, Tool, Tools, Turn};

/// Columns of a plan that goes to no terminal.
const WIDTH: usize = 100;

/// Prints the plan of every turn.
///
/// # Errors
/// A wrong tools.yaml or input, or a stdout that takes no more.
pub fn plan(arguments: &Arguments, context: &Context) -> Result<Exit, Failure> {
    let tools = Arc::new(context.load_tools()?);
    let describer = arguments.describe.then(|| Describer::new(&tools, context));
    let mask = context.mask(&tools);
    let inputs = files::open(&arguments.input, |source| source)?;
    let mut drawing = Drawing {
        arguments,
        context,
        checker: Checker::new(Arc::clone(&tools)),
        describer: describer.transpose()?,
        open: BTreeSet::new(),
        jobs: arguments.input.jobs.unwrap_or(tools.concurrency),
        tools,
        mask,
        turns: 0,
        rejects: false,
    };
    if arguments.format == PlanFormat::Mermaid {
        stdout::line(MERMAID_HEADER.trim_end())?;
    }
    let mut broke_off = Exit::Ok;
    for input in inputs {
        match input {
            Incoming::Recording(recording) => {
                for index in 0..recording.len() {
                    drawing.turn(recording.turn(index, arguments.input.all)?)?;
                }
            }
            Incoming::Stream(mut live) => {
                let (turns, broke) = live.whole();
                turns.into_iter().try_for_each(|turn| drawing.turn(turn))?;
                if let Some(error) = broke {
                    let broken = files::broken(error, live.messages());
                    broke_off = broke_off.max(context.stderr.failure(&broken));
                }
            }
            Incoming::Lines(_) => {}
        }
    }
    drawing.tell_open();
    let found = arguments.strict && drawing.rejects;
    Ok(broke_off.max(if found { Exit::Found } else { Exit::Ok }))
}

/// Plans on their way to stdout.
struct Drawing<'a> {
    arguments: &'a Arguments,
    context: &'a Context,
    tools: Arc<Tools>,
    checker: Checker,
    mask: Mask,
    /// Asks tools what they take, where that is wanted.
    describer: Option<Describer<'a>>,
    /// The names of tools that were called and not asked.
    open: BTreeSet<String>,
    jobs: NonZeroUsize,
    /// How many were drawn.
    turns: usize,
    /// A call is rejected.
    rejects: bool,
}

impl Drawing<'_> {
    /// Prints the plan of the next turn.
    fn turn(&mut self, turn: Turn) -> Result<(), Failure> {
        self.tell_started(&turn);
        let (number, format) = (self.turns, self.arguments.format);
        // Of an agent only its own input is known.
        let is_called = |tool: &Arc<Tool>| turn.calls.iter().any(|call| call.name == tool.name);
        let mut unasked = unasked(&self.tools, &turn.calls);
        unasked.retain(is_called);
        match &self.describer {
            Some(describer) => describer.ask(&unasked),
            None => self
                .open
                .extend(unasked.iter().map(|tool| tool.name.clone())),
        }
        let calls = self.checker.turn(turn.numbered(number));
        let plan = Plan::of(number, &calls, &self.tools, self.jobs);
        self.rejects |= !plan.rejected.is_empty();
        if number > 0 && format == PlanFormat::Text {
            stdout::line("")?;
        }
        stdout::line(draw(&plan, format, &self.mask, self.context).trim_end())?;
        self.turns += 1;
        Ok(())
    }

    fn tell_open(&self) {
        if !self.open.is_empty() {
            let names: Vec<&str> = self.open.iter().map(String::as_str).collect();
            self.context.stderr.note(&format!(
                "any input is taken for {}, which --describe would ask for its schema",
                names.join(", ")
            ));
        }
    }
}

impl Drawing<'_> {
    /// What another run has started is not what a plan can tell: only the world knows how it ended.
    fn tell_started(&self, turn: &Turn) {
        let started = |call: &&Call| turn.started.contains(&call.position);
        let started = turn.calls.iter().filter(started);
        let started: Vec<&str> = started.map(|call| call.id.as_str()).collect();
        if !started.is_empty() {
            self.context.stderr.note(&format!(
                "started before, without a result: {}; of these `run` runs only what may run twice or surely did nothing",
                started.join(", ")
            ));
        }
    }
}

fn draw(plan: &Plan<'_>, format: PlanFormat, mask: &Mask, context: &Context) -> String {
    match format {
        PlanFormat::Json => plan_json(plan, mask),
        PlanFormat::Mermaid => plan_mermaid(plan, mask),
        PlanFormat::Text => {
            let look = Look {
                width: stdout::width().unwrap_or(WIDTH),
                color: context.stderr.color_of_stdout(),
            };
            plan_text(plan, look, mask)
        }
    }
}
