//! Marks truncated outputs: inserts how much was cut, and where the whole output is, at the place of the cut.

use std::borrow::Cow;

use serde_json::json;

use crate::answer::texts::{ErrorText, text_block};
use crate::text::{format_bytes, truncate};
use crate::types::{CaptureStats, OutputUnavailable, ResultContent, Tool};

/// The tool that reads the whole of an output, and the id by which it does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputReader<'a> {
    pub(crate) tool_name: &'a str,
    pub(crate) call_id: &'a str,
}

/// Adds the mark to truncated content. Content blocks get it as a block at the end.
pub(crate) fn mark_content(
    content: &ResultContent,
    captured: &CaptureStats,
    tool: Option<&Tool>,
    reader: Option<OutputReader<'_>>,
) -> ResultContent {
    match content {
        ResultContent::Text(text) => {
            ResultContent::Text(mark_text(text, captured, tool, reader).into_owned())
        }
        ResultContent::Blocks(blocks) => {
            let mark = truncation_mark(captured, tool, reader).and_then(|mark| text_block(&mark));
            ResultContent::Blocks(blocks.iter().cloned().chain(mark).collect())
        }
    }
}

/// Inserts the mark into a truncated text; returns any other text unchanged.
pub(crate) fn mark_text<'t>(
    text: &'t str,
    captured: &CaptureStats,
    tool: Option<&Tool>,
    reader: Option<OutputReader<'_>>,
) -> Cow<'t, str> {
    let Some(mark) = truncation_mark(captured, tool, reader) else {
        return Cow::Borrowed(text);
    };
    let (head, tail) = text.split_at(text.floor_char_boundary(captured.cut_offset));
    let line = |text: &str, end: bool| match text {
        "" => "",
        _ if end && text.ends_with('\n') || !end && text.starts_with('\n') => "",
        _ => "\n",
    };
    let (before, after) = (line(head, true), line(tail, false));
    Cow::Owned(format!("{head}{before}{mark}{after}{tail}"))
}

/// Says how much was cut, which file has the whole output, and how to read it; `None` if nothing was cut.
fn truncation_mark(
    captured: &CaptureStats,
    tool: Option<&Tool>,
    reader: Option<OutputReader<'_>>,
) -> Option<String> {
    if captured.cut_bytes == 0 {
        return None;
    }
    let cut = match captured.cut_bytes {
        1 => "1 byte".to_owned(),
        cut => format!("{} bytes", group_digits(cut)),
    };
    let Some(file) = &captured.saved_path else {
        return Some(format!("[… {cut} cut; the whole output was not kept …]"));
    };
    let file = file.display();
    let whole = match tool.map(|tool| tool.max_saved) {
        Some(limit) if captured.total_bytes > limit => {
            format!("the first {} of the output are", format_bytes(limit))
        }
        _ => "the whole output is".to_owned(),
    };
    let read = reader.map_or(String::new(), |reader| {
        let input = json!({"id": reader.call_id});
        format!("; {} {input} reads it", reader.tool_name)
    });
    Some(format!("[… {cut} cut; {whole} in {file}{read} …]"))
}

/// Formats `1234567` as `1,234,567`.
fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

// Explains why `read_output` has nothing to return.

/// Maximum length of an id that a model named, in characters.
const MAX_ID_CHARS: usize = 100;

/// Says what is missing, in one sentence.
pub(crate) fn describe(why: &OutputUnavailable) -> String {
    match why {
        OutputUnavailable::UnknownId { id, .. } => format!(
            "no call of this conversation that has ended has the id {}",
            quoted(id)
        ),
        OutputUnavailable::NotCut { id } => format!(
            "the output of {} wasn't cut: its result has all of it",
            quoted(id)
        ),
        OutputUnavailable::NotKept { id } => format!(
            "the output of {} was cut, and the rest of it wasn't kept",
            quoted(id)
        ),
        OutputUnavailable::Gone { id } => {
            format!("the output of {} can't be read any more", quoted(id))
        }
        OutputUnavailable::PastEnd { offset, len } => {
            format!("there is nothing at byte {offset}: the output has {len} bytes")
        }
        OutputUnavailable::NoConversation => {
            "this client has no session, so its earlier calls aren't known".to_owned()
        }
    }
}

pub(crate) fn explain(why: &OutputUnavailable) -> ErrorText {
    let hint: Cow<'static, str> = match why {
        OutputUnavailable::UnknownId { known, .. } if known.is_empty() => {
            "no output was cut in this conversation, so there is nothing to read.".into()
        }
        OutputUnavailable::UnknownId { .. } => "use one of these ids.".into(),
        OutputUnavailable::NotCut { .. } => "read that result.".into(),
        OutputUnavailable::NotKept { .. } | OutputUnavailable::Gone { .. } => {
            "make that call again with an input that returns less.".into()
        }
        OutputUnavailable::PastEnd { len, .. } => format!("use an offset below {len}.").into(),
        OutputUnavailable::NoConversation => {
            "make calls with inputs that return less, so that nothing is cut.".into()
        }
    };
    let sentence = describe(why);
    let mut letters = sentence.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    let error: String = first.into_iter().chain(letters).collect();
    ErrorText::new(format!("{error}."), hint).with_details(known_ids(why))
}

fn known_ids(why: &OutputUnavailable) -> String {
    match why {
        OutputUnavailable::UnknownId { known, more, .. } if !known.is_empty() => {
            let listed: Vec<String> = known.iter().map(|id| json_string(id)).collect();
            let earlier = match more {
                0 => String::new(),
                more => format!(" and {more} earlier ones"),
            };
            format!("Outputs that were cut: {}{earlier}", listed.join(", "))
        }
        _ => String::new(),
    }
}

/// Returns an id that a model named. It may be anything, so it isn't repeated whole.
fn quoted(id: &str) -> String {
    json_string(&truncate(id, MAX_ID_CHARS))
}

fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
