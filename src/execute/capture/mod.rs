//! Bytes of an output as they come → what is kept of them. Memory stays flat however much comes.

mod document;
mod tail;
mod text;
mod whole;
mod window;

pub(super) use document::Document;
pub(super) use tail::Tail;
pub(super) use text::{Limits, TextCapture};
