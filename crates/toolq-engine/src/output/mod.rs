//! Turns the output of a program, or the body of a response, into the content of a result.

mod capture;
mod collector;
mod parser;
mod saved_file;
mod shown_lines;

pub(crate) use capture::{CaptureLimits, TextCapture, make_room};
pub(crate) use collector::OutputCollector;
pub(crate) use parser::{find_violation, strip_whitespace};
pub(crate) use saved_file::LeadingFile;
