//! `toolq plan`: prints what would run, in which batches, and why. Runs no calls, opens no connections, and writes no
//! log. What the memory knows of earlier runs is a part of the plan.

mod log_estimates;
mod plan_memory;
mod plan_printer;
mod plan_writer;

use std::sync::Arc;

use crate::args::plan::PlanArguments as Arguments;
use crate::commands::plan::log_estimates::apply_log_estimates;
use crate::commands::plan::plan_printer::PlanPrinter;
use crate::commands::plan::plan_writer::PlanWriter;
use crate::context::CommandContext;
use crate::input::{CommandInput, files};
use crate::output::{CommandError, Exit};
use crate::session::ToolDescriber;

/// Prints the plan of every turn.
///
/// # Errors
/// tools.yaml or an input is invalid, or stdout can't be written.
pub fn print_plans(arguments: &Arguments, context: &CommandContext) -> Result<Exit, CommandError> {
    let (mut tools, tools_file) = context.load_tools_file()?;
    context.warn_about_root(&tools, &tools_file);
    if let Some(log) = &arguments.estimates {
        apply_log_estimates(&mut tools, log, context)?;
    }
    let tools = Arc::new(tools);
    let describer = arguments
        .describe
        .then(|| ToolDescriber::new(&tools, context));
    let mask = Arc::new(context.build_mask(&tools));
    let file = arguments
        .out
        .as_ref()
        .map(|path| PlanWriter::new(path, arguments, &tools_file, &tools, &mask, context));
    let inputs = files::open_inputs(&arguments.input, Ok)?;
    files::print_notes(
        files::recordings(&inputs),
        arguments.input.all,
        &context.stderr,
    );
    let mut printer = PlanPrinter::new(arguments, tools, mask, context)?;
    printer.describer = describer.transpose()?;
    printer.file = file.transpose()?;
    let mut exit = Exit::Ok;
    for input in inputs {
        exit = exit.max(print_input(input, &mut printer, arguments, context)?);
    }
    let has_rejected = printer.finish()?;
    if arguments.strict && has_rejected {
        exit = exit.max(Exit::ProblemsFound);
    }
    Ok(exit)
}

/// Prints the plans of an input. If it breaks off, or a turn can't be read, the turns before are printed all the same.
fn print_input(
    input: CommandInput,
    printer: &mut PlanPrinter<'_>,
    arguments: &Arguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    match input {
        CommandInput::Recording(recording) => {
            let recording = recording.with_read_ahead();
            printer.begin_recording(&recording)?;
            let printed = (0..recording.len()).try_for_each(|index| {
                printer.print_turn(recording.turn(index, arguments.input.all)?)
            });
            printer.flush()?;
            printed?;
        }
        CommandInput::Stream(_) if printer.file.is_some() => {
            return Err(CommandError::usage(
                "the calls of a stream can't be approved by a plan: `toolq run` starts them before all of them are known",
            )
            .with_hint("plan the complete response instead"));
        }
        CommandInput::Stream(mut stream) => {
            printer.begin_input();
            let (turns, stream_error) = stream.read_to_end();
            let printed = turns
                .into_iter()
                .try_for_each(|turn| printer.print_turn(turn));
            printer.flush()?;
            printed?;
            if let Some(error) = stream_error {
                printer.has_broken_stream = true;
                let failure = files::stream_failure(error, stream.message_count());
                return Ok(context.stderr.print_error(&failure));
            }
        }
        CommandInput::Follow(_) => {}
    }
    Ok(Exit::Ok)
}
