//! The pieces that texts are made of: lines and text blocks.

use serde_json::value::{RawValue, to_raw_value};

/// Joins the parts that aren't empty, each on its own line.
pub(crate) fn join_lines<const N: usize>(parts: [&str; N]) -> String {
    let parts = parts.map(|part| part.trim_end_matches('\n'));
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

/// Builds a text block in Anthropic's format.
pub(crate) fn text_block(text: &str) -> Option<Box<RawValue>> {
    to_raw_value(&serde_json::json!({"type": "text", "text": text})).ok()
}
