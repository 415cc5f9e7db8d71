//! `toolq generate`: prints files that are generated from the program itself.

use clap::CommandFactory as _;

use crate::args::{GenerateArguments, GeneratedFile, ProgramArguments};
use crate::commands::complete::completion_script;
use crate::man_page;
use crate::output::stdout;
use crate::output::{CommandError, Exit};
use crate::plan_file::plan_schema;
use toolq_core::tools_file;

/// Prints the requested file.
///
/// # Errors
/// Stdout can't be written.
pub fn print_generated_file(arguments: &GenerateArguments) -> Result<Exit, CommandError> {
    let text = match arguments.file {
        GeneratedFile::Schema { log: true, .. } => format!("{:#}", toolq_log::log_schema()),
        GeneratedFile::Schema { plan: true, .. } => format!("{:#}", plan_schema()),
        GeneratedFile::Schema { .. } => {
            format!("{:#}", tools_file::generate_tools_schema())
        }
        GeneratedFile::Completions { shell } => render_completions(shell),
        GeneratedFile::Man => man_page::render_man_page().map_err(|error| {
            CommandError::usage(format!("failed to render the man page: {error}"))
        })?,
    };
    stdout::write_line(text.trim_end())?;
    Ok(Exit::Ok)
}

fn render_completions(shell: clap_complete::Shell) -> String {
    if let Some(script) = completion_script(shell) {
        return script.to_owned();
    }
    let mut script = Vec::new();
    clap_complete::generate(
        shell,
        &mut ProgramArguments::command(),
        "toolq",
        &mut script,
    );
    String::from_utf8_lossy(&script).into_owned()
}
