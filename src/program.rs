//! The command line: arguments, settings, one file per command in `commands`, and the only stdout.
//!
//! Nothing here decides what happens to a call; it opens files, wires the stages together, and turns what went wrong
//! into words and an exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Arguments, Command};
use crate::commands::agent;
use crate::commands::check;
use crate::commands::generate;
use crate::commands::init;
use crate::commands::log;
use crate::commands::plan;
use crate::commands::replay;
use crate::commands::run;
use crate::commands::tools;
use crate::context::Context;
use crate::output::panics;
use crate::output::stdout;
use crate::output::{Exit, Failure};
use crate::session::signals;
use toolq_core::os::arm_failpoints;

/// Runs the program on its arguments, the first being its own name.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(exit) = procfence::supervise(&arguments) {
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
        Command::Run(arguments) => run::run(arguments, context),
        Command::Agent(arguments) => agent::agent(arguments, context),
        Command::Plan(arguments) => plan::plan(arguments, context),
        Command::Replay(arguments) => replay::replay(arguments, context),
        Command::Check(arguments) => check::check(arguments, context),
        Command::Tools(arguments) => tools::tools(arguments, context),
        Command::Log(arguments) => log::log(arguments, context),
        Command::Generate(arguments) => generate::generate(arguments),
        Command::Init(arguments) => init::init(arguments, context),
    }
}
