//! `toolq plan`: what would run, in which batches, and why. Runs nothing, opens no connection, writes no log.

use std::sync::Arc;

use crate::cli::arguments::{Plan as Arguments, PlanFormat};
use crate::cli::commands::inputs;
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::stdout;
use crate::model::Mask;
use crate::plan::text::Look;
use crate::plan::{self, Plan};
use crate::validate::Checker;

/// Columns of a plan that goes to no terminal.
const WIDTH: usize = 100;

/// Prints the plan of every turn.
///
/// # Errors
/// A wrong tools.yaml or input, or a stdout that takes no more.
pub fn plan(arguments: &Arguments, context: &Context) -> Result<Exit, Failure> {
    let tools = Arc::new(context.load_tools()?);
    let mask = context.mask(&tools);
    let recordings = inputs::read(&arguments.input)?;
    let jobs = arguments.input.jobs.unwrap_or(tools.concurrency);
    let checker = Checker::new(Arc::clone(&tools));

    let mut exit = Exit::Ok;
    let mut number = 0;
    if arguments.format == PlanFormat::Mermaid {
        stdout::line(plan::mermaid::HEADER.trim_end())?;
    }
    for recording in &recordings {
        for index in 0..recording.len() {
            let turn = recording.turn(index, arguments.input.all)?.numbered(number);
            let calls = checker.turn(turn);
            let plan = Plan::of(number, &calls, &tools, jobs);
            if arguments.strict && !plan.rejected.is_empty() {
                exit = Exit::Found;
            }
            if number > 0 && arguments.format == PlanFormat::Text {
                stdout::line("")?;
            }
            stdout::line(draw(&plan, arguments.format, &mask, context).trim_end())?;
            number += 1;
        }
    }
    Ok(exit)
}

fn draw(plan: &Plan<'_>, format: PlanFormat, mask: &Mask, context: &Context) -> String {
    match format {
        PlanFormat::Json => plan::json::line(plan, mask),
        PlanFormat::Mermaid => plan::mermaid::turn(plan, mask),
        PlanFormat::Text => {
            let look = Look {
                width: stdout::width().unwrap_or(WIDTH),
                color: context.stderr.color_of_stdout(),
            };
            plan::text::draw(plan, look, mask)
        }
    }
}
