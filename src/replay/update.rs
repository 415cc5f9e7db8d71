//! Updates the results in a recording. All other bytes stay the same.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use tempfile::NamedTempFile;

use toolq_core::answer;
use toolq_core::json::{JsonText, ParsedObject, to_json_line};
use toolq_core::transcript::RecordedReply;
use toolq_core::types::{AnswerForm, CallAnswer, Dialect};

/// Returns an edit that replaces the content of a recorded result. Returns `None` for session logs, which are never
/// rewritten, and for results that have no place for the content.
pub fn rewrite_reply(reply: &RecordedReply, actual: &CallAnswer) -> Option<RecordingEdit> {
    let object = ParsedObject::parse(&reply.json).ok()??;
    let rendered = |form| render_content(form, actual);
    let text = match reply.dialect {
        // A session log is evidence.
        Dialect::Toolq => return None,
        Dialect::Codex => rewrite_codex(&object, actual)?,
        Dialect::Anthropic | Dialect::ClaudeCode => rewrite_anthropic(&object, actual)?,
        Dialect::OpenAiResponses => {
            with_content_at(&object, "output", &rendered(AnswerForm::OpenAiResponses)?)
        }
        Dialect::Gemini => replace_part(
            object.json(),
            object.get("response")?,
            &rendered(AnswerForm::Gemini)?,
        ),
        Dialect::Bedrock => rewrite_bedrock(&object, actual)?,
        Dialect::OpenAiChat | Dialect::Ollama => {
            with_content_at(&object, "content", &rendered(AnswerForm::OpenAiChat)?)
        }
    };
    Some(RecordingEdit {
        byte_range: reply.byte_range.clone(),
        text,
    })
}

/// Rewrites a `toolResult` block: its content, and its status.
fn rewrite_bedrock(block: &ParsedObject, actual: &CallAnswer) -> Option<String> {
    let content = render_content(AnswerForm::Bedrock, actual)?;
    let text = replace_part(block.json(), block.get("content")?, &content);
    let status = if actual.is_error {
        "\"error\""
    } else {
        "\"success\""
    };
    with_ending_at("status", status, actual, text)
}

/// Rewrites a `tool_result` block: its content, and its `is_error` if that changes.
fn rewrite_anthropic(block: &ParsedObject, actual: &CallAnswer) -> Option<String> {
    let text = with_content_at(
        block,
        "content",
        &render_content(AnswerForm::Block, actual)?,
    );
    let is_error = if actual.is_error { "true" } else { "false" };
    with_ending_at("is_error", is_error, actual, text)
}

/// Returns a block with how the call ended at `key`. Where the block doesn't say that, only an error has to be added.
fn with_ending_at(key: &str, ending: &str, actual: &CallAnswer, text: String) -> Option<String> {
    let block = ParsedObject::parse(&text).ok()??;
    match block.get(key) {
        Some(known) => Some(replace_part(block.json(), known, ending)),
        None if actual.is_error => Some(add_member(block.json(), key, ending)),
        None => Some(text),
    }
}

/// Rewrites an item whose text may be JSON that contains the output and the exit code.
fn rewrite_codex(item: &ParsedObject, actual: &CallAnswer) -> Option<String> {
    let content = render_content(AnswerForm::OpenAiResponses, actual)?;
    let inner = item.get_text("output");
    let inner = inner
        .as_deref()
        .and_then(|text| ParsedObject::parse(text).ok().flatten());
    let exited_with_error = |inner: &ParsedObject| {
        let exit = inner.get_object("metadata")?.get("exit_code")?;
        Some(exit.get() != "0")
    };
    let failed = inner.as_ref().and_then(exited_with_error);
    let (Some(inner), Some(failed)) = (inner, failed) else {
        return Some(with_content_at(item, "output", &content));
    };
    let text = replace_part(inner.json(), inner.get("output")?, &content);
    let inner = ParsedObject::parse(&text).ok()??;
    let text = if failed == actual.is_error {
        text.clone()
    } else {
        // The actual exit code isn't known here; only whether the call failed is compared.
        let code = if actual.is_error { "1" } else { "0" };
        replace_part(
            inner.json(),
            inner.get_object("metadata")?.get("exit_code")?,
            code,
        )
    };
    let quoted = serde_json::to_string(&text).ok()?;
    Some(with_content_at(item, "output", &quoted))
}

/// Returns the object with `content` at `key`.
fn with_content_at(object: &ParsedObject, key: &str, content: &str) -> String {
    let Some(old) = object.get(key) else {
        return add_member(object.json(), key, content);
    };
    // A single text block stays a block.
    let blocks = old.elements().unwrap_or_default();
    let block = match blocks.as_slice() {
        [block] if content.starts_with('"') => block.object(),
        _ => None,
    };
    let text = block.and_then(|block| block.get("text"));
    replace_part(object.json(), text.unwrap_or(old), content)
}

/// Renders the current content as one line of JSON in a form.
fn render_content(form: AnswerForm, actual: &CallAnswer) -> Option<String> {
    let rendered = answer::render_answers(form, std::slice::from_ref(actual));
    let json = JsonText::new(&rendered);
    let object = json.object();
    let content = match form {
        AnswerForm::Gemini => {
            let part = first_object(&object?.get_elements("parts")?)?;
            part.get_object("functionResponse")?.get("response")?
        }
        AnswerForm::Bedrock => {
            let block = first_object(&object?.get_elements("content")?)?;
            block.get_object("toolResult")?.get("content")?
        }
        _ => {
            let result = object.or_else(|| first_object(&json.elements()?))?;
            result.get("content").or_else(|| result.get("output"))?
        }
    };
    Some(to_json_line(content.get()).into_owned())
}

fn first_object<'a>(list: &[JsonText<'a>]) -> Option<ParsedObject<'a>> {
    list.first()?.object()
}

/// Returns `whole` with its subslice `part` replaced by `text`.
fn replace_part(whole: JsonText, part: JsonText, text: &str) -> String {
    let begin = part.get().as_ptr().addr() - whole.get().as_ptr().addr();
    let (before, rest) = whole.get().split_at(begin);
    [before, text, &rest[part.get().len()..]].concat()
}

/// Returns a nonempty object with a member added at its end.
fn add_member(whole: JsonText, key: &str, value: &str) -> String {
    // Strip only one brace: the last member may be an object, too.
    let open = whole.get();
    let open = open.strip_suffix('}').unwrap_or(open).trim_end();
    let rest = &whole.get()[open.len()..];
    format!(r#"{open},"{key}":{value}{rest}"#)
}

// Writes new results into recordings. Only the bytes of changed results change.

/// The replacement of a recorded result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingEdit {
    /// The recorded result's bytes in the file.
    byte_range: Range<u64>,
    /// The JSON of the new result.
    pub text: String,
}

/// Identifies the state of a recording before it is replayed, to detect changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    identity: (u64, u64),
    len: u64,
    modified: (i64, i64),
}

impl FileStamp {
    /// Returns the stamp of the file at `path`.
    ///
    /// # Errors
    /// Its metadata can't be read.
    pub fn from_path(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|metadata| Self::from_metadata(&metadata))
    }

    fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            identity: (metadata.dev(), metadata.ino()),
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// Applies `edits` to the recording at `path`, provided that it still matches `stamp`. Returns the number of edits that
/// took effect.
///
/// The new content is written to a temporary file next to it, which then replaces it, with its owner and permissions. A
/// symlink stays a symlink. If one recorded result answers several calls and their edits differ, only the first is
/// applied.
///
/// # Errors
/// The file is read-only, changed in the meantime, or can't be written. It is left unchanged.
pub fn update_recording(
    path: &Path,
    stamp: FileStamp,
    mut edits: Vec<RecordingEdit>,
) -> io::Result<usize> {
    edits.sort_by_key(|edit| edit.byte_range.start);
    let edit_count = edits.len();
    let mut skipped = 0;
    edits.dedup_by(|later, first| {
        let same = later.byte_range.start < first.byte_range.end;
        skipped += usize::from(same && later.text != first.text);
        same
    });
    let path = fs::canonicalize(path)?;
    let mut old = File::open(&path)?;
    let metadata = old.metadata()?;
    if metadata.permissions().readonly() {
        return Err(io::Error::other("it is read-only"));
    }
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut new = NamedTempFile::new_in(dir)?;
    copy_with_edits(&mut old, &edits, new.as_file_mut())?;
    let _ = std::os::unix::fs::fchown(new.as_file(), Some(metadata.uid()), Some(metadata.gid()));
    new.as_file().set_permissions(metadata.permissions())?;
    new.as_file().sync_all()?;
    if FileStamp::from_metadata(&metadata) != stamp || FileStamp::from_path(&path)? != stamp {
        return Err(io::Error::other("it changed while it was being replayed"));
    }
    new.persist(&path).map_err(|refused| refused.error)?;
    Ok(edit_count - skipped)
}

/// Copies `old` to `new` and applies the sorted edits.
fn copy_with_edits(old: &mut File, edits: &[RecordingEdit], new: &mut File) -> io::Result<()> {
    let mut offset = 0;
    for edit in edits {
        io::copy(&mut (&*old).take(edit.byte_range.start - offset), new)?;
        new.write_all(edit.text.as_bytes())?;
        offset = edit.byte_range.end;
        old.seek(SeekFrom::Start(offset))?;
    }
    io::copy(old, new).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    use toolq_core::types::{CallKind, RecordedResult, ResultContent};

    fn rewrite_text(dialect: Dialect, json: &str, text: &str, is_error: bool) -> String {
        let reply = RecordedReply {
            dialect,
            byte_range: 5..9,
            json: json.to_owned(),
            result: RecordedResult {
                content: ResultContent::Text(String::new()),
                is_error: None,
                skipped: false,
                rejected: None,
            },
        };
        let actual = CallAnswer {
            tool_use_id: "other".to_owned(),
            tool_name: "tool".to_owned(),
            content: ResultContent::Text(text.to_owned()),
            is_error,
            for_clients: None,
            report: toolq_core::types::CallReport::default(),
            has_number_id: false,
            kind: CallKind::Function,
        };
        rewrite_reply(&reply, &actual).unwrap().text
    }

    /// Order, whitespace, and unknown members stay the same.
    #[test]
    fn only_the_content_changes() {
        for (dialect, json, expected) in [
            (
                Dialect::Anthropic,
                r#"{ "content" : "a\u0041", "type":"tool_result", "tool_use_id":"x" , "k":1.0}"#,
                r#"{ "content" : "n\"ü", "type":"tool_result", "tool_use_id":"x" , "k":1.0}"#,
            ),
            (
                Dialect::ClaudeCode,
                r#"{"tool_use_id":"x","content":[{"type":"text", "text":"a", "k":1}],"is_error":true}"#,
                r#"{"tool_use_id":"x","content":[{"type":"text", "text":"n\"ü", "k":1}],"is_error":false}"#,
            ),
            (
                Dialect::Anthropic,
                r#"{"tool_use_id":"x" }"#,
                r#"{"tool_use_id":"x","content":"n\"ü" }"#,
            ),
            (
                Dialect::OpenAiChat,
                r#"{"role":"tool","content":null,"tool_call_id":"x"}"#,
                r#"{"role":"tool","content":"n\"ü","tool_call_id":"x"}"#,
            ),
            (
                Dialect::OpenAiResponses,
                r#"{"output":"a","call_id":"x"}"#,
                r#"{"output":"n\"ü","call_id":"x"}"#,
            ),
            (
                Dialect::Gemini,
                r#"{"name":"f","response":{"result":[1]}}"#,
                r#"{"name":"f","response":{"output":"n\"ü"}}"#,
            ),
            (
                Dialect::Bedrock,
                r#"{"toolUseId":"x","content":[{"json":{"a":1}}],"status":"error"}"#,
                r#"{"toolUseId":"x","content":[{"text":"n\"ü"}],"status":"success"}"#,
            ),
            (
                Dialect::Codex,
                r#"{"call_id":"x","output":"{\"output\":\"a\",\"metadata\":{\"exit_code\":2,\"s\":0.1}}"}"#,
                r#"{"call_id":"x","output":"{\"output\":\"n\\\"ü\",\"metadata\":{\"exit_code\":0,\"s\":0.1}}"}"#,
            ),
        ] {
            assert_eq!(rewrite_text(dialect, json, "n\"ü", false), expected);
        }
        let json = r#"{"tool_use_id":"x","content":"a"}"#;
        let failed = r#"{"tool_use_id":"x","content":"b","is_error":true}"#;
        assert_eq!(rewrite_text(Dialect::Anthropic, json, "b", true), failed);
        // The braces of the last member aren't those of the result.
        let cached = r#"{"tool_use_id":"x","content":"a","cache_control":{"type":"ephemeral"}}"#;
        let with_error = r#"{"tool_use_id":"x","content":"b","cache_control":{"type":"ephemeral"},"is_error":true}"#;
        assert_eq!(
            rewrite_text(Dialect::Anthropic, cached, "b", true),
            with_error
        );
        assert_eq!(
            rewrite_text(Dialect::Anthropic, failed, "a", false),
            json.replace('}', r#","is_error":false}"#)
        );
    }
}
