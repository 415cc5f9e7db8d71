//! Bytes of an output as they come → what is kept of them. Memory stays flat however much comes.

mod document;
mod saved_file;
mod tail;
mod text;
mod window;

pub(crate) use document::Document;
pub(crate) use tail::Tail;
pub(crate) use text::{Limits, TextCapture};
