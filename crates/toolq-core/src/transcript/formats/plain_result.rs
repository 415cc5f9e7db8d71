//! Reads results in the form that most dialects share: a content, and nothing about whether the call failed.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::JsonText;
use crate::types::{RecordedResult, ResultContent};

/// Creates a result in a form that doesn't say whether the call failed.
pub(crate) fn plain_result(content: Option<JsonText>) -> RecordedResult {
    RecordedResult {
        content: parse_content(content),
        is_error: None,
        skipped: false,
        rejected: None,
    }
}

/// Parses the content of a result: a text, a list of blocks or parts, or the JSON of anything else as text.
fn parse_content(value: Option<JsonText>) -> ResultContent {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return ResultContent::Text(String::new());
    };
    if let Some(parts) = value.elements() {
        let raw = |part: JsonText| RawValue::from_string(part.get().to_owned());
        let blocks: Result<Vec<_>, _> = parts.into_iter().map(raw).collect();
        return blocks.map_or(
            ResultContent::Text(value.get().to_owned()),
            ResultContent::Blocks,
        );
    }
    let text = value.to_text().unwrap_or(Cow::Borrowed(value.get()));
    ResultContent::Text(text.into_owned())
}
