//! Turns a complete document into content: parses it, selects a part, and removes whitespace between tokens.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::output::capture::{CaptureLimits, DocumentCapture, TextCapture};
use redact::Mask;
use toolq_core::json::{InvalidInput, JsonText, ParsedObject, check_json, pointer_tokens};
use toolq_core::json_schema::CompiledSchema;
use toolq_core::types::{CaptureStats, OutputKind, ResultContent};

/// How to parse a document.
#[derive(Debug)]
pub(crate) struct OutputParser {
    pub(crate) kind: OutputKind,
    /// JSON pointer to the part to return; `None` for the whole document.
    pub(crate) select: Option<String>,
    /// The JSON that replaces an empty document; `None` if an empty document is an error.
    pub(crate) empty: Option<String>,
    /// What the output must match. It then stays JSON, whole and with its quotes, as clients read it.
    pub(crate) schema: Option<Arc<CompiledSchema>>,
    pub(crate) limits: CaptureLimits,
    pub(crate) mask: Arc<Mask>,
}

impl OutputParser {
    /// Returns the content for the model, and what was cut.
    ///
    /// # Errors
    /// Why the document isn't what the tool declares. Never quotes its values.
    pub(crate) fn parse_content(
        &self,
        document: &DocumentCapture,
    ) -> Result<(ResultContent, CaptureStats), String> {
        let text = document.text()?;
        let is_empty = text.trim_ascii().is_empty();
        let whole: &RawValue = match &self.empty {
            Some(empty) if is_empty => parse_json(empty)?,
            None if is_empty => return Err("the output is empty".to_owned()),
            _ => parse_json(text)?,
        };
        // The replacement of an empty output is already the part to return.
        let value = self
            .select
            .as_deref()
            .filter(|_| !is_empty)
            .map_or(Ok(whole.into()), |pointer| {
                resolve_pointer(whole.into(), pointer)
            })?;
        if self.kind == OutputKind::Content {
            return Ok((
                ResultContent::Blocks(self.parse_blocks(value)?),
                CaptureStats::default(),
            ));
        }
        let is_unquoted = self.select.is_some() && self.schema.is_none();
        let string = if is_unquoted { value.to_text() } else { None };
        let text = string.unwrap_or_else(|| {
            let compact = strip_whitespace(value.get());
            self.mask.apply_to_json(&compact).into_owned().into()
        });
        if let Some(schema) = &self.schema {
            check(schema, &text, self.limits.max_shown)?;
        }
        let mut capture = TextCapture::new(self.limits.clone(), Arc::clone(&self.mask));
        capture.push(text.as_bytes());
        let (text, captured) = capture.finish(false);
        Ok((ResultContent::Text(text), captured))
    }

    /// Parses an array of content blocks of known types. Blocks can't be cut, so all of them together must fit.
    fn parse_blocks(&self, value: JsonText<'_>) -> Result<Vec<Box<RawValue>>, String> {
        let (bytes, max) = (value.get().len(), self.limits.max_shown);
        if bytes as u64 > max {
            return Err(format!(
                "the content blocks total {bytes} bytes, more than max_output ({max})"
            ));
        }
        let blocks = value
            .elements()
            .ok_or("the output is not an array of content blocks")?;
        let blocks = blocks.into_iter().enumerate().map(|(index, block)| {
            check_block(block).map_err(|fault| format!("/{index}{fault}"))?;
            if !is_content_block(block) {
                return Err(format!(
                    "/{index} is not a content block of type text, image, document, audio, resource or resource_link"
                ));
            }
            let compact =
                anthropic_image(block).unwrap_or_else(|| strip_whitespace(block.get()));
            let masked = self.mask.apply_to_json(&compact).into_owned();
            // An enclosing mask of the whole block would be a string.
            RawValue::from_string(masked)
                .ok()
                .filter(|block| block.get().starts_with('{'))
                .ok_or_else(|| format!("/{index} contains a secret outside a string"))
        });
        blocks.collect()
    }
}

fn parse_json(text: &str) -> Result<&RawValue, String> {
    serde_json::from_str(text).map_err(|error| format!("the output is not valid JSON: {error}"))
}

/// Refuses what is also refused in an input. The block becomes part of a message with the results of other calls, and
/// must not make that unreadable for any reader.
fn check_block(block: JsonText<'_>) -> Result<(), String> {
    match check_json(block.get()) {
        Ok(()) => Ok(()),
        Err(InvalidInput::TooLarge(how)) => Err(format!(" {how}")),
        Err(InvalidInput::NotJson(why)) => Err(format!(": {why}")),
        Err(InvalidInput::DuplicateKey { pointer, key }) => {
            Err(format!("{pointer} has the duplicate key {key:?}"))
        }
        Err(other) => Err(format!(": {other}")),
    }
}

/// Returns the value at a JSON pointer (RFC 6901), verbatim, so that numbers keep their digits.
fn resolve_pointer<'v>(value: JsonText<'v>, pointer: &str) -> Result<JsonText<'v>, String> {
    pointer_tokens(pointer).try_fold(value, |value, key| {
        lookup_member(value, &key)?.ok_or_else(|| format!("the response has no value at {pointer}"))
    })
}

/// Returns an element or member of `value`. A duplicate key is an error: parsers disagree on which of its values
/// counts.
fn lookup_member<'v>(value: JsonText<'v>, key: &str) -> Result<Option<JsonText<'v>>, String> {
    if let Some(items) = value.elements() {
        let index = key.parse::<usize>().ok();
        return Ok(index.and_then(|index| items.get(index).copied()));
    }
    match value.object() {
        Some(object) => object
            .get_unique(key)
            .map_err(|_| format!("an object in the response has the duplicate key `{key}`")),
        None => Ok(None),
    }
}

/// Returns the JSON without whitespace between its tokens.
pub(crate) fn strip_whitespace(json: &str) -> String {
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

// Recognizes the content blocks that a tool may print: those of Anthropic, and those of MCP.

/// Returns whether `output: content` takes this block.
fn is_content_block(block: JsonText<'_>) -> bool {
    let Some(block) = block.object() else {
        return false;
    };
    let has_text = |name| block.get_text(name).is_some();
    match block.get_text("type").as_deref() {
        Some("text") => has_text("text"),
        Some("image") if block.get("source").is_none() => is_mcp_media(&block),
        Some("image" | "document") => block.get_object("source").is_some(),
        Some("audio") => is_mcp_media(&block),
        Some("resource_link") => has_text("uri") && has_text("name"),
        Some("resource") => block.get_object("resource").is_some_and(|resource| {
            let has_contents =
                resource.get_text("text").is_some() || resource.get_text("blob").is_some();
            resource.get_text("uri").is_some() && has_contents
        }),
        _ => false,
    }
}

/// Returns an image of MCP as Anthropic has it, since models take images in that form; `None` for any other block.
fn anthropic_image(block: JsonText<'_>) -> Option<String> {
    let block = block.object()?;
    if block.get_text("type")? != "image" || block.get("source").is_some() {
        return None;
    }
    let (media_type, data) = (block.get("mimeType")?.get(), block.get("data")?.get());
    Some(format!(
        r#"{{"type":"image","source":{{"type":"base64","media_type":{media_type},"data":{data}}}}}"#
    ))
}

fn is_mcp_media(block: &ParsedObject) -> bool {
    block.get_text("data").is_some() && block.get_text("mimeType").is_some()
}

// Holds JSON against an output schema.

/// Checks JSON that may be shown up to `max_bytes`: if it were cut, it would match no schema.
///
/// # Errors
/// What is wrong, and where.
pub(crate) fn check(schema: &CompiledSchema, json: &str, max_bytes: u64) -> Result<(), String> {
    let bytes = json.len();
    if bytes as u64 > max_bytes {
        return Err(format!(
            "the output has {bytes} bytes, more than max_output ({max_bytes}), and can't be cut since it has a schema"
        ));
    }
    match find_violation(schema, json, "output") {
        Some(violation) => Err(violation),
        None => Ok(()),
    }
}

/// Returns how JSON, which is called `noun` there, violates a schema.
pub(crate) fn find_violation(schema: &CompiledSchema, json: &str, noun: &str) -> Option<String> {
    let Ok(value) = serde_json::from_str::<Value>(json) else {
        return Some(format!("the {noun} is nested too deeply"));
    };
    let problems = schema.problem_details(&value);
    let first = problems.first()?;
    let place = match first.path.as_str() {
        "" => format!("the {noun}"),
        path => format!("{path} of the {noun}"),
    };
    let message = &first.message;
    Some(format!("{place} violates the output schema: {message}"))
}
