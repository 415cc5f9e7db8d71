//! Captures an output as it arrives. Memory use is bounded, however much arrives.

mod document;
mod leading_file;
mod saved_file;
mod shown_lines;
mod tail;
mod text;
mod window;

pub(crate) use document::DocumentCapture;
pub(crate) use leading_file::LeadingFile;
pub(crate) use tail::TailCapture;
pub(crate) use text::{CaptureLimits, TextCapture};
