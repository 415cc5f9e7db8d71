//! Turns a server's answer into the outcome of a call.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use data_encoding::BASE64;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::mcp::incoming::{CallReply, describe_loss};
use crate::output::{LeadingFile, OutputCollector, find_violation, strip_whitespace};
use crate::reach::Reach;
use redact::Mask;
use toolq_core::json_schema::CompiledSchema;
use toolq_core::text::format_bytes;
use toolq_core::types::{
    CallEnding, CallOutput, ClientContent, Effect, Outcome, OutputKind, ResultContent, ResultParts,
    ToolLock, TransportCause, TransportError, TransportPhase,
};
use toolq_mcp::client::CallError;
use toolq_mcp::{CallToolResult, ContentBlock};

/// The result of a call whose session the server no longer knows.
const SESSION_EXPIRED: &str = "The server no longer knew the session, and refused the call without running it. The next call begins another session.";
/// The types of images that models read.
const MODEL_IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// How much the form of a block adds to its content, at most.
const BLOCK_BYTES: u64 = 100;

/// Returns the outcome of a call of a tool with this effect. `was_sent` says whether the server may have seen the call.
pub(crate) fn outcome_of_reply(
    reply: CallReply,
    server: &str,
    (effect, was_sent): (Effect, bool),
    mut output: OutputCollector,
    attachments: &Attachments,
    start_failure: impl FnOnce(i32) -> Outcome,
) -> Outcome {
    let failed_with = |mut output: OutputCollector, text: &str, ending| {
        output.push(text.as_bytes());
        Outcome::Failed {
            output: output.into_output(String::new()),
            ending,
        }
    };
    let failed = |output, text: &str| failed_with(output, text, CallEnding::ServerError);
    let mut outcome = match reply {
        CallReply::Answered(Ok(result)) if result.is_error => {
            failed(output, &text_of(&result, attachments))
        }
        CallReply::Answered(Ok(result)) => {
            let document = document_of(&result, &output, attachments);
            output.push(document.as_bytes());
            output.into_outcome(CallEnding::Answered, String::new)
        }
        CallReply::Answered(Err(error)) if effect == Effect::Write && is_unreadable(&error) => {
            let error = transport_error(server, true, error.to_string());
            Reach::outcome_of_loss(effect, error, || output.into_output(String::new()))
        }
        CallReply::Answered(Err(error)) => failed(output, &error.to_string()),
        CallReply::Drifted(drift) => Outcome::ToolDrifted(drift),
        CallReply::NotStarted(errno) => start_failure(errno),
        CallReply::Lost { detail, stderr } => {
            let error = transport_error(server, was_sent, describe_loss(&detail, &stderr));
            Reach::outcome_of_loss(effect, error, || output.into_output(stderr))
        }
        CallReply::Failed(mut error) => {
            if !was_sent {
                error.phase = TransportPhase::Connect;
            }
            Reach::outcome_of_loss(effect, error, || output.into_output(String::new()))
        }
        CallReply::Status { status, text, .. } => {
            failed_with(output, &text, CallEnding::HttpStatus(status))
        }
        CallReply::SessionExpired => failed(output, SESSION_EXPIRED),
        CallReply::HeadersRefused(error) => failed(output, &error.to_string()),
    };
    if let Some(captured) = outcome.captured_mut() {
        captured.attachments = attachments.kept.take().into();
    }
    outcome
}

/// Returns whether an answer says nothing about what the call did.
fn is_unreadable(error: &CallError) -> bool {
    match error {
        CallError::InvalidAnswer(_) | CallError::TooLong(_) | CallError::UnknownResultType(_) => {
            true
        }
        CallError::Refused(_) | CallError::InputRequired => false,
    }
}

/// Adds what MCP clients get to the outcome of a call, if it ended well.
pub(crate) fn add_client_content(mut outcome: Outcome, content: ClientContent) -> Outcome {
    if let Outcome::Succeeded { for_clients, .. } = &mut outcome {
        let has_content = content.structured.is_some() || content.blocks.is_some();
        *for_clients = has_content.then(|| Box::new(content));
    }
    outcome
}

/// Returns the outcome of a call that ended well, but whose structured content isn't what its tool declares.
pub(crate) fn refuse_output(outcome: Outcome, problem: String) -> Outcome {
    let Outcome::Succeeded {
        content,
        captured,
        ending,
        for_clients: _,
    } = outcome
    else {
        return outcome;
    };
    let text = match content {
        ResultContent::Text(text) => text,
        ResultContent::Blocks(_) => String::new(),
    };
    Outcome::BadOutput {
        problem,
        output: CallOutput {
            text,
            captured,
            ..CallOutput::default()
        },
        ending,
    }
}

/// Why there is no answer from a server.
pub(crate) fn transport_error(server: &str, was_sent: bool, detail: String) -> TransportError {
    TransportError {
        phase: if was_sent {
            TransportPhase::Response
        } else {
            TransportPhase::Connect
        },
        origin: format!("MCP server {server:?}"),
        cause: TransportCause::Other,
        detail,
    }
}

/// Returns the answer in the form that the tool's `output` declares.
fn document_of<'r>(
    result: &'r CallToolResult,
    output: &OutputCollector,
    attachments: &Attachments,
) -> Cow<'r, str> {
    match (output.kind(), &result.structured_content) {
        (OutputKind::Json, Some(json)) => json.get().into(),
        (OutputKind::Content, _) => blocks_of(result, output.max_shown(), attachments).into(),
        (OutputKind::Text, Some(json)) if result.content.is_empty() => json.get().into(),
        (OutputKind::Text | OutputKind::Json, _) => text_of(result, attachments),
    }
}

/// Returns the blocks as a model reads them. An image for which there is no room, or of a type that no model reads, becomes a
/// line of text.
fn blocks_of(result: &CallToolResult, max_bytes: u64, attachments: &Attachments) -> String {
    let mut room = max_bytes;
    let blocks = result.content.iter().map(|block| {
        if let ContentBlock::Image {
            data, mime_type, ..
        } = block
            && MODEL_IMAGE_TYPES.contains(&&**mime_type)
        {
            let image = json!({
                "type": "image",
                "source": {"type": "base64", "media_type": mime_type, "data": data},
            });
            let bytes = data.len() as u64 + BLOCK_BYTES;
            if let Some(rest) = room.checked_sub(bytes) {
                room = rest;
                return image;
            }
        }
        let text = text_of_block(block, attachments);
        room = room.saturating_sub(text.len() as u64 + BLOCK_BYTES);
        json!({"type": "text", "text": text})
    });
    blocks.collect::<Value>().to_string()
}

/// Returns the text blocks, each on lines of its own.
fn text_of<'r>(result: &'r CallToolResult, attachments: &Attachments) -> Cow<'r, str> {
    let blocks = result.content.iter();
    let mut texts = blocks.map(|block| text_of_block(block, attachments));
    let mut all = texts.next().unwrap_or_default();
    for text in texts {
        all.to_mut().extend(["\n", &*text]);
    }
    all
}

/// Returns a block as text. What isn't text is kept beside the log, and named.
fn text_of_block<'b>(block: &'b ContentBlock, attachments: &Attachments) -> Cow<'b, str> {
    let text = match block {
        ContentBlock::Text { text } => return text.into(),
        ContentBlock::Image {
            data, mime_type, ..
        } => attachments.keep(&format!("an image of type {mime_type}"), mime_type, data),
        ContentBlock::Audio {
            data, mime_type, ..
        } => attachments.keep(&format!("a sound of type {mime_type}"), mime_type, data),
        ContentBlock::ResourceLink { uri, name, .. } => {
            let mut text = format!("[a link to {uri}");
            if !name.is_empty() {
                let _ = write!(text, ", {name}");
            }
            text + "]"
        }
        ContentBlock::Resource { resource, .. } => match (&resource.text, &resource.blob) {
            (Some(text), _) => return text.into(),
            (None, Some(blob)) => {
                let mime_type = resource.mime_type.as_deref().unwrap_or_default();
                let what = format!("the binary resource {}", resource.uri);
                attachments.keep(&what, mime_type, blob)
            }
            (None, None) => format!("[the resource {}]", resource.uri),
        },
        ContentBlock::Unknown => return "[content of an unknown type]".into(),
    };
    text.into()
}

// Keeps what a server answered that isn't text, beside the log. The model reads a line that says where.

/// How many contents of one answer are saved, of which some may be equal: a record of the log names their files, and nothing
/// else happens while they are written.
const MAX_ATTACHMENTS: usize = 256;

/// Where the contents of a call's answer are kept.
#[derive(Debug)]
pub(crate) struct Attachments {
    /// `None` keeps nothing.
    pub(crate) dir: Option<PathBuf>,
    /// How large one of them may be.
    pub(crate) max_bytes: u64,
    pub(crate) mask: Arc<Mask>,
    /// How many contents there were.
    pub(crate) count: Cell<usize>,
    /// What has been kept, in order.
    pub(crate) kept: RefCell<Vec<PathBuf>>,
}

impl Attachments {
    /// Keeps content in base64, and returns the line that replaces it. `what` names it: `a sound of type audio/wav`.
    pub(crate) fn keep(&self, what: &str, mime_type: &str, base64: &str) -> String {
        let Ok(bytes) = BASE64.decode(base64.as_bytes()) else {
            return format!("[{what} that can't be decoded]");
        };
        let size = format_bytes(bytes.len() as u64);
        if bytes.len() as u64 > self.max_bytes {
            return format!("[{what}, {size}, more than max_saved]");
        }
        if self.count.replace(self.count.get() + 1) >= MAX_ATTACHMENTS {
            return format!("[{what}, {size}, not saved: there are too many]");
        }
        let mut file = LeadingFile::new(self.dir.clone(), self.max_bytes, Arc::clone(&self.mask));
        file.push(&bytes);
        match file.finish(extension_of(mime_type)).1 {
            Some(path) => {
                let line = format!("[{what}, {size}, saved in {}]", path.display());
                let mut kept = self.kept.borrow_mut();
                if !kept.contains(&path) {
                    kept.push(path);
                }
                line
            }
            None => format!("[{what}, {size}, not saved]"),
        }
    }
}

/// Returns the usual extension of files of this type.
fn extension_of(mime_type: &str) -> &'static str {
    match mime_type {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "application/pdf" => "pdf",
        "application/zip" => "zip",
        _ => "bin",
    }
}

// Chooses what of a server's result the model reads, and what MCP clients get.

/// Returns the result with the contents that the model reads. A result without structured content has only its own.
pub(crate) fn choose_parts(mut result: CallToolResult, parts: ResultParts) -> CallToolResult {
    let Some(structured) = &result.structured_content else {
        return result;
    };
    let block = ContentBlock::Text {
        text: structured.get().to_owned(),
    };
    match parts {
        ResultParts::Content => {}
        ResultParts::Structured => {
            result.content.retain(|block| !is_text(block));
            result.content.insert(0, block);
        }
        // Servers often repeat their structured content as text, as the specification advises.
        ResultParts::Both => {
            if !has_same_json(&result.content, structured.get()) {
                result.content.push(block);
            }
        }
    }
    result
}

fn is_text(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Text { .. })
}

fn has_same_json(content: &[ContentBlock], json: &str) -> bool {
    let Ok(expected) = serde_json::from_str::<Value>(json) else {
        return false;
    };
    content.iter().any(|block| {
        let ContentBlock::Text { text } = block else {
            return false;
        };
        serde_json::from_str::<Value>(text).is_ok_and(|value| value == expected)
    })
}

// The contents of a result as MCP clients get them: what isn't text stays what it is.

/// Returns the blocks of a result, with secrets masked. A block for which `max_bytes` has no room becomes a line of text.
/// Returns `None` if all of them are texts, or if the texts are too long: then clients get what the model reads.
pub(crate) fn client_blocks(
    result: &CallToolResult,
    max_bytes: u64,
    mask: &Mask,
    attachments: &Attachments,
) -> Option<Vec<Box<RawValue>>> {
    if !result.content.iter().any(|block| !reads_as_text(block)) {
        return None;
    }
    let mut room = max_bytes;
    let blocks = result.content.iter().map(|block| {
        let whole = masked_json(block, mask)?;
        let fits = whole.get().len() as u64 <= room;
        let shown = if fits {
            whole
        } else if reads_as_text(block) {
            return None;
        } else {
            let text = text_of_block(block, attachments).into_owned();
            masked_json(&ContentBlock::Text { text }, mask)?
        };
        room = room.checked_sub(shown.get().len() as u64)?;
        Some(shown)
    });
    blocks.collect()
}

fn reads_as_text(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Text { .. } | ContentBlock::Unknown)
}

fn masked_json(block: &ContentBlock, mask: &Mask) -> Option<Box<RawValue>> {
    let json = serde_json::to_string(block).ok()?;
    RawValue::from_string(mask.apply_to_json(&json).into_owned()).ok()
}

// The structured content of results: held against the output schemas that servers announced when they were locked, and
// made readable for MCP clients.

/// What error messages call it.
const NOUN: &str = "structured content";

/// Reads structured content with the schemas that calls have needed, compiled once each.
#[derive(Debug, Default)]
pub(crate) struct StructuredContentReader {
    /// By the digest of the tool's definition. `None` can't be compiled, and checks nothing.
    compiled: Mutex<HashMap<String, Option<Arc<CompiledSchema>>>>,
}

impl StructuredContentReader {
    /// Returns the structured content of a result, with secrets masked. Returns `None` if it has none, if no schema
    /// describes it, or if it is longer than `max_bytes`: JSON can't be cut.
    ///
    /// # Errors
    /// How it violates the output schema of its tool.
    pub(crate) fn read(
        &self,
        lock: Option<&ToolLock>,
        result: &CallToolResult,
        max_bytes: u64,
        mask: &Mask,
    ) -> Result<Option<Box<RawValue>>, String> {
        let (Some(content), Some(lock)) = (&result.structured_content, lock) else {
            return Ok(None);
        };
        let Some(schema) = self.compile(lock) else {
            return Ok(None);
        };
        if let Some(violation) = find_violation(&schema, content.get(), NOUN) {
            return Err(mask.apply(&violation).into_owned());
        }
        let compact = strip_whitespace(content.get());
        if compact.len() as u64 > max_bytes {
            return Ok(None);
        }
        let masked = mask.apply_to_json(&compact).into_owned();
        if masked != compact && find_violation(&schema, &masked, NOUN).is_some() {
            return Err(
                "the structured content violates the output schema once its secrets are masked"
                    .to_owned(),
            );
        }
        Ok(RawValue::from_string(masked).ok())
    }

    fn compile(&self, lock: &ToolLock) -> Option<Arc<CompiledSchema>> {
        let schema = lock.definition.output_schema.as_ref()?;
        let mut compiled = self.compiled.lock();
        let known = compiled.entry(lock.sha256.clone()).or_insert_with(|| {
            let compiled = CompiledSchema::compile(schema);
            compiled.ok().map(Arc::new)
        });
        known.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_contents_are_saved_and_no_more_whether_they_are_equal_or_not() {
        for count_of_kinds in [1, 10, 100_000] {
            let dir = tempfile::tempdir().unwrap();
            let attachments = Attachments {
                dir: Some(dir.path().to_owned()),
                max_bytes: 1 << 20,
                mask: Arc::default(),
                count: Cell::default(),
                kept: RefCell::default(),
            };
            let lines = (0..2 * MAX_ATTACHMENTS).map(|number| {
                let content = (number % count_of_kinds).to_string();
                attachments.keep("a sound", "audio/wav", &BASE64.encode(content.as_bytes()))
            });
            let saved = lines.filter(|line| line.contains("saved in")).count();
            assert_eq!(saved, MAX_ATTACHMENTS);
            assert_eq!(
                attachments.kept.take().len(),
                MAX_ATTACHMENTS.min(count_of_kinds)
            );
        }
    }
}

#[cfg(test)]
mod result_parts_tests {
    use serde_json::value::to_raw_value;
    use serde_json::{Map, json};

    use super::*;

    /// Returns the texts and types of the contents that are chosen of a result.
    fn chosen(result: &Value, parts: ResultParts) -> Vec<String> {
        let structured = result.get("structuredContent").map(to_raw_value);
        let result = CallToolResult {
            meta: Map::new(),
            content: serde_json::from_value(result["content"].clone()).unwrap(),
            structured_content: structured.transpose().unwrap(),
            is_error: false,
        };
        let result = choose_parts(result, parts);
        let describe = |block: &ContentBlock| match block {
            ContentBlock::Text { text } => text.clone(),
            _ => "other".to_owned(),
        };
        result.content.iter().map(describe).collect()
    }

    #[test]
    fn texts_give_way_to_structured_content_and_images_stay() {
        let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
        let text = json!({"type": "text", "text": "one note"});
        let result = json!({"content": [text, image], "structuredContent": {"n": 1}});
        for (parts, expected) in [
            (ResultParts::Content, vec!["one note", "other"]),
            (ResultParts::Structured, vec![r#"{"n":1}"#, "other"]),
            (ResultParts::Both, vec!["one note", "other", r#"{"n":1}"#]),
        ] {
            assert_eq!(chosen(&result, parts), expected, "{parts:?}");
        }
        let unstructured = json!({ "content": [text] });
        for parts in [ResultParts::Structured, ResultParts::Both] {
            assert_eq!(chosen(&unstructured, parts), ["one note"]);
        }
    }

    #[test]
    fn the_same_json_is_not_said_twice() {
        let text = json!({"type": "text", "text": "{ \"n\": 1 }"});
        let result = json!({"content": [text], "structuredContent": {"n": 1}});
        assert_eq!(chosen(&result, ResultParts::Both), [r#"{ "n": 1 }"#]);
    }
}
