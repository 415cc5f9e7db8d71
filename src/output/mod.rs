//! The outputs of commands: stdout, stderr, diagnostics, and the exit code.

mod background_writer;
pub(crate) mod diagnostics;
mod output_file;
mod printer;
mod stderr;
pub(crate) mod stdout;

pub(crate) use background_writer::{
    BackgroundWriter, Barrier, MAX_CLIENT_BYTES, start_client_output,
};
pub use diagnostics::{PlacedProblem, problems_for_github, problems_json, problems_sarif};
pub(crate) use output_file::{check_output_file, follow_links, replace_file, unwritten_file};
pub(crate) use printer::AnswerPrinter;
pub(crate) use stderr::{
    StderrStream, StderrTerminal, StderrWriter, color_policy, kind_style, with_ascii_symbols,
};
pub(crate) use stdout::StdoutError;
pub(crate) use toolq_core::exit::{CommandError, Exit};
