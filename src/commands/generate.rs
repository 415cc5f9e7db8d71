//! `toolq generate`: the files that are made from the program itself.

use clap::CommandFactory as _;

use crate::args::{Arguments, Generate, Generated};
use crate::man_page;
use crate::output::stdout;
use crate::output::{Exit, Failure};
use toolq_core::tools_file;

/// Prints the file that was asked for.
///
/// # Errors
/// A stdout that takes no more.
pub fn generate(arguments: &Generate) -> Result<Exit, Failure> {
    let text = match arguments.what {
        Generated::Schema { log: true } => format!("{:#}", toolq_log::log_schema()),
        Generated::Schema { log: false } => format!("{:#}", tools_file::tools_schema()),
        Generated::Completions { shell } => completions(shell),
        Generated::Man => man_page::page()
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
