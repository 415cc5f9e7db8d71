//! The command line: arguments, settings, one file per command in `commands`, and the only stdout.
//!
//! Nothing here decides what happens to a call; it opens files, wires the stages together, and turns what went wrong
//! into words and an exit code.

mod arguments;
mod closed;
mod commands;
mod context;
mod describe;
mod diagnostics;
mod earlier;
mod environment;
mod events;
mod exit;
mod failure;
mod feed;
mod lines;
mod live;
mod manual;
mod observers;
mod orphans;
mod panics;
mod place;
mod printer;
mod reports;
mod running;
mod session_log;
mod signals;
mod stderr;
mod stdout;
mod terminal;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use crate::execute;
use crate::model::arm_failpoints;

use arguments::{Arguments, Command};
use context::Context;
use exit::Exit;
use failure::Failure;

/// Runs the program on its arguments, the first being its own name.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(exit) = execute::supervise(&arguments) {
        return exit;
    }
    panics::tell();
    signals::survive_file_limit();
    let exit = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => {
            let context = Context::new(&arguments.common);
            arm_failpoints(&context.environment);
            dispatch(&arguments.command, &context)
                .unwrap_or_else(|failure| context.stderr.failure(&failure))
        }
        Err(usage) => stdout::usage(&usage),
    };
    exit.into()
}

fn dispatch(command: &Command, context: &Context) -> Result<Exit, Failure> {
    match command {
        Command::Run(arguments) => commands::run::run(arguments, context),
        Command::Agent(arguments) => commands::agent::agent(arguments, context),
        Command::Plan(arguments) => commands::plan::plan(arguments, context),
        Command::Replay(arguments) => commands::replay::replay(arguments, context),
        Command::Check(arguments) => commands::check::check(arguments, context),
        Command::Tools(arguments) => commands::tools::tools(arguments, context),
        Command::Log(arguments) => commands::log::log(arguments, context),
        Command::Generate(arguments) => commands::generate::generate(arguments),
        Command::Init(arguments) => commands::init::init(arguments, context),
    }
}
