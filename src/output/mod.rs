//! The outputs of commands: stdout, stderr, diagnostics, and the exit code.

mod client_output;
mod color_choice;
pub(crate) mod diagnostics;
mod document_writer;
mod output_file;
pub(crate) mod panics;
mod printer;
mod problem_report;
mod stalled_reader;
mod stderr;
mod stderr_stream;
mod stderr_terminal;
pub(crate) mod stdout;
mod text_position;
pub(crate) mod trace;

pub(crate) use client_output::ClientOutput;
pub(crate) use color_choice::{ColorChoice, ColorPolicy};
pub(crate) use document_writer::DocumentWriter;
pub(crate) use output_file::{check_output_file, follow_links, replace_file};
pub(crate) use printer::AnswerPrinter;
pub use problem_report::{PlacedProblem, problems_for_github, problems_json, problems_sarif};
pub(crate) use stderr::{StderrWriter, with_ascii_symbols};
pub(crate) use stderr_stream::StderrStream;
pub(crate) use stderr_terminal::StderrTerminal;
pub(crate) use stdout::StdoutError;
pub(crate) use toolq_core::exit::{CommandError, Exit};
