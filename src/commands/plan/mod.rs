//! `toolq plan`: prints what would run, in which batches, and why. Runs no calls, opens no connections, and writes no
//! log. What the memory knows of earlier runs is a part of the plan.

mod plan_printer;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};

use crate::args::shared_flags::{InputArguments, LogFlags};
use crate::args::values::PlanFormat;
use crate::commands::plan::plan_printer::PlanPrinter;
use crate::context::CommandContext;
use crate::input::{CommandInput, files};
use crate::output::{CommandError, Exit, check_output_file};
use crate::session::ToolDescriber;
use toolq_core::text::parse_duration;

#[derive(Debug, Args)]
pub struct PlanArguments {
    #[command(flatten)]
    pub input: InputArguments,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: PlanFormat,
    #[command(flatten)]
    pub log: LogFlags,
    /// Run the `describe` commands of tools that have one, to get their schemas; runs nothing else
    #[arg(long)]
    pub describe: bool,
    /// Also write the plan to a file, for review; `toolq run --plan FILE` applies it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// How long the plan can be applied
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = parse_validity, requires = "out")]
    pub valid: Duration,
    /// Exit 1 if any call is rejected
    #[arg(long)]
    pub strict: bool,
}

/// Parses how long a plan can be applied, which is longer than no time.
fn parse_validity(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("a plan that is valid for no time can't be applied".to_owned()),
        duration => Ok(duration),
    }
}

/// Prints the plan of every turn.
///
/// # Errors
/// tools.yaml or an input is invalid, or stdout can't be written.
pub fn print_plans(
    arguments: &PlanArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let (tools, tools_file) = context.load_tools_file()?;
    context.warn_about_root(&tools, &tools_file);
    let tools = Arc::new(tools);
    let describer = arguments
        .describe
        .then(|| ToolDescriber::new(&tools, context));
    let mask = Arc::new(context.build_mask(&tools));
    let inputs = files::open_inputs(&arguments.input, Ok)?;
    files::print_notes(
        files::recordings(&inputs),
        arguments.input.all,
        &context.stderr,
    );
    let mut printer = PlanPrinter::new(arguments, tools, mask, context)?;
    printer.describer = describer.transpose()?;
    if let Some(path) = &arguments.out {
        let inputs = arguments.input.files.iter().map(PathBuf::as_path);
        check_output_file(path, inputs, &tools_file.files())?;
    }
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
    arguments: &PlanArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    match input {
        CommandInput::Recording(recording) => {
            printer.begin_recording(&recording)?;
            let all = arguments.input.all;
            let printed = recording.for_each_turn(all, |turn| printer.print_turn(turn));
            printer.flush()?;
            printed?;
        }
        CommandInput::Stream(_) if arguments.out.is_some() => {
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
