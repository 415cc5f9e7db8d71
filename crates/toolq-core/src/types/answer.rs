//! What a call brings back.

use std::path::PathBuf;

use serde_json::value::RawValue;

/// What was captured of an output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// Bytes that came.
    pub bytes: u64,
    /// Bytes that were left out in the middle; 0 where all are there.
    pub cut: u64,
    /// Where in the text they are left out, in bytes.
    pub cut_at: usize,
    /// The file that holds all of them (up to `max_saved`), where something was cut.
    pub saved: Option<PathBuf>,
    /// Some bytes were no UTF-8 and stand as U+FFFD.
    pub lossy: bool,
    /// Processes that the program had left running and that were ended.
    pub leftovers: u32,
}

/// What a model gets of a result.
#[derive(Debug, Clone)]
pub enum Content {
    /// Text.
    Text(String),
    /// Anthropic content blocks: text, image, document.
    Blocks(Vec<Box<RawValue>>),
}

impl Content {
    /// The text, or the text of its text blocks.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
        }
    }
}

/// The one result of a call, in no dialect yet.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The id of the call.
    pub tool_use_id: String,
    /// The name that the call asked for.
    pub tool_name: String,
    /// What the model reads.
    pub content: Content,
    /// Whether it is told of an error.
    pub is_error: bool,
}
