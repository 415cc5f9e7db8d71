//! `toolq generate`: the files that are made from the program itself.

use clap::CommandFactory as _;

use crate::cli::arguments::{Arguments, Generate, Generated};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::manual;
use crate::cli::stdout;
use crate::parse;
use crate::record;

/// Prints the file that was asked for.
///
/// # Errors
/// A stdout that takes no more.
pub fn generate(arguments: &Generate) -> Result<Exit, Failure> {
    let text = match arguments.what {
        Generated::Schema { log: true } => format!("{:#}", record::log_schema()),
        Generated::Schema { log: false } => format!("{:#}", parse::tools_schema()),
        Generated::Completions { shell } => completions(shell),
        Generated::Man => manual::page()
            .map_err(|error| Failure::usage(format!("the man page can't be made: {error}")))?,
    };
    stdout::line(text.trim_end())?;
    Ok(Exit::Ok)
}

fn completions(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "toolq", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}
