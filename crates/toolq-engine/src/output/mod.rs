//! Turns the output of a program, or the body of a response, into the content of a result.

mod capture;
mod collector;
mod parser;

pub(crate) use capture::{LeadingFile, TailCapture};
pub(crate) use collector::OutputCollector;
pub(crate) use parser::{find_violation, strip_whitespace};
