//! Captures an output as it arrives. Memory use is bounded, however much arrives.

mod saved_file;
mod shown_lines;
mod text;
mod window;

pub(crate) use saved_file::LeadingFile;
pub(crate) use text::{CaptureLimits, DocumentCapture, TextCapture};
pub(crate) use window::TailCapture;
