//! A whole document → content: parsed, a part selected, the space between tokens taken out.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::output::capture::{Document, Limits, TextCapture};
use redact::Mask;
use toolq_core::json::{InputFault, Json, check_json};
use toolq_core::types::{Captured, Content, OutputKind};

/// How a document is read.
pub(crate) struct Reading<'s> {
    pub(crate) kind: OutputKind,
    /// JSON pointer to the part that is wanted.
    pub(crate) select: Option<&'s str>,
    pub(crate) limits: Limits,
    pub(crate) mask: Arc<Mask>,
}

impl Reading<'_> {
    /// What the model gets of it, and what was cut.
    ///
    /// # Errors
    /// Why the document is not what was declared; never holds any of it.
    pub(crate) fn content(self, document: &Document) -> Result<(Content, Captured), String> {
        let whole: &RawValue = serde_json::from_str(document.text()?)
            .map_err(|error| format!("the output is no JSON: {error}"))?;
        let value = self
            .select
            .map_or(Ok(whole.into()), |pointer| at(whole.into(), pointer))?;
        if self.kind == OutputKind::Content {
            return Ok((Content::Blocks(self.blocks(value)?), Captured::default()));
        }
        let string = self.select.and_then(|_| value.text());
        let text = string.unwrap_or_else(|| compact(value.get()).into());
        let mut capture = TextCapture::new(self.limits, self.mask);
        capture.push(text.as_bytes());
        let (text, captured) = capture.finish(false);
        Ok((Content::Text(text), captured))
    }

    /// Content blocks, each of a known kind. They can't be cut, so together they must fit.
    fn blocks(&self, value: Json<'_>) -> Result<Vec<Box<RawValue>>, String> {
        let (bytes, most) = (value.get().len(), self.limits.shown);
        if bytes as u64 > most {
            return Err(format!(
                "the content blocks have {bytes} bytes, more than max_output ({most})"
            ));
        }
        let blocks = value
            .list()
            .ok_or("the output is no array of content blocks")?;
        let blocks = blocks.into_iter().enumerate().map(|(index, block)| {
            if !is_content_block(block) {
                return Err(format!(
                    "/{index} is no content block of type text, image or document"
                ));
            }
            sound(block).map_err(|fault| format!("/{index}{fault}"))?;
            let compact = compact(block.get());
            let masked = self.mask.text(&compact).into_owned();
            RawValue::from_string(masked)
                .map_err(|_| format!("/{index} holds a secret outside of a string"))
        });
        blocks.collect()
    }
}

/// Whether a `tool_result` may hold this.
fn is_content_block(block: Json<'_>) -> bool {
    let has = |name: &str, kind: &str| {
        let value = block.object().and_then(|block| block.get(name));
        value.is_some_and(|value| value.kind() == kind)
    };
    let kind = block.object().and_then(|block| block.text("type"));
    match kind.as_deref() {
        Some("text") => has("text", "a string"),
        Some("image" | "document") => has("source", "an object"),
        _ => false,
    }
}

/// A block stands as it is among the results of other calls, which no reader should lose by it: what is refused in an
/// input is refused here.
fn sound(block: Json<'_>) -> Result<(), String> {
    match check_json(block.get()) {
        Ok(()) => Ok(()),
        Err(InputFault::TooLarge(how)) => Err(format!(" {how}")),
        Err(InputFault::NotJson(why)) => Err(format!(": {why}")),
        Err(InputFault::DuplicateKey { pointer, key }) => {
            Err(format!("{pointer} has the key {key:?} twice"))
        }
        Err(other) => Err(format!(": {other}")),
    }
}

/// The value at a JSON pointer (RFC 6901), digits kept.
fn at<'v>(value: Json<'v>, pointer: &str) -> Result<Json<'v>, String> {
    pointer.split('/').skip(1).try_fold(value, |value, token| {
        let key = token.replace("~1", "/").replace("~0", "~");
        member(value, &key)?.ok_or_else(|| format!("the response has nothing at {pointer}"))
    })
}

/// A member that stands twice is neither: readers differ in which of them counts.
fn member<'v>(value: Json<'v>, key: &str) -> Result<Option<Json<'v>>, String> {
    if let Some(items) = value.list() {
        let index = key.parse::<usize>().ok();
        return Ok(index.and_then(|index| items.get(index).copied()));
    }
    match value.object() {
        Some(object) => object
            .once(key)
            .map_err(|_| format!("the response has `{key}` twice in one object")),
        None => Ok(None),
    }
}

/// JSON without the space between its tokens.
fn compact(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let (mut in_string, mut escaped) = (false, false);
    for c in json.chars() {
        if !in_string && matches!(c, ' ' | '\t' | '\r' | '\n') {
            continue;
        }
        text.push(c);
        if c == '"' && !escaped {
            in_string = !in_string;
        }
        escaped = c == '\\' && !escaped;
    }
    text
}
