//! Reads the content of a host's result.

use serde_json::json;
use serde_json::value::RawValue;

use crate::output::OutputCollector;
use toolq_core::json::JsonText;
use toolq_core::types::OutputKind;

/// Adds the content of a result to the output, as the tool's `output` declares it.
///
/// # Errors
/// What is wrong with it. Values aren't quoted.
pub(super) fn push_content(
    content: Option<&RawValue>,
    output: OutputCollector,
) -> Result<OutputCollector, String> {
    let content = content.map(JsonText::from).filter(|json| !json.is_null());
    let text = content.map_or(Some("".into()), JsonText::to_text);
    let is_list = content.is_some_and(|json| json.elements().is_some());
    let (mut output, document) = match (output.kind(), text, content) {
        (OutputKind::Text | OutputKind::Json, Some(text), _) => (output, text.into_owned()),
        (OutputKind::Content, Some(text), _) => {
            let blocks = json!([{"type": "text", "text": text}]);
            (output, blocks.to_string())
        }
        (OutputKind::Json, None, Some(json)) => (output, json.get().to_owned()),
        (OutputKind::Content, None, Some(json)) if is_list => (output, json.get().to_owned()),
        (OutputKind::Text, None, Some(json)) if is_list => {
            (output.into_content(), json.get().to_owned())
        }
        (_, _, json) => {
            let kind = json.map_or("missing".to_owned(), |json| json.kind().to_string());
            return Err(format!(
                "the content of its result is {kind}; it must be a text or a list of content blocks"
            ));
        }
    };
    output.push(document.as_bytes());
    Ok(output)
}

/// Returns the content of a result as text: the texts of its blocks, or its JSON if it has no texts.
pub fn text_of(content: Option<&RawValue>) -> String {
    let Some(content) = content.map(JsonText::from).filter(|json| !json.is_null()) else {
        return String::new();
    };
    if let Some(text) = content.to_text() {
        return text.into_owned();
    }
    let blocks = content.elements().unwrap_or_default();
    let texts = blocks.iter().filter_map(|block| {
        let text = block.object()?.get("text")?.to_text()?;
        Some(text.into_owned())
    });
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() {
        content.get().to_owned()
    } else {
        texts.join("\n")
    }
}
