//! An output of which the middle was left out → the same with a mark there: how much was cut, and where the whole is.

use std::borrow::Cow;

use crate::answer::texts::dispatch::text_block;
use crate::text::format_bytes;
use crate::types::{Captured, Content, Tool};

/// The content with its mark; content blocks get a block for it at their end.
pub(crate) fn marked(content: &Content, captured: &Captured, tool: Option<&Tool>) -> Content {
    match content {
        Content::Text(text) => Content::Text(shown(text, captured, tool).into_owned()),
        Content::Blocks(blocks) => {
            let mark = mark(captured, tool).and_then(|mark| text_block(&mark));
            Content::Blocks(blocks.iter().cloned().chain(mark).collect())
        }
    }
}

/// The text with its mark; as it is where nothing was cut.
pub(crate) fn shown<'t>(text: &'t str, captured: &Captured, tool: Option<&Tool>) -> Cow<'t, str> {
    let Some(mark) = mark(captured, tool) else {
        return Cow::Borrowed(text);
    };
    let (head, tail) = text.split_at(text.floor_char_boundary(captured.cut_at));
    let line = |text: &str, end: bool| match text {
        "" => "",
        _ if end && text.ends_with('\n') || !end && text.starts_with('\n') => "",
        _ => "\n",
    };
    let (before, after) = (line(head, true), line(tail, false));
    Cow::Owned(format!("{head}{before}{mark}{after}{tail}"))
}

/// How much was cut, and the file that holds the whole; none where nothing was cut.
fn mark(captured: &Captured, tool: Option<&Tool>) -> Option<String> {
    if captured.cut == 0 {
        return None;
    }
    let cut = match captured.cut {
        1 => "1 byte".to_owned(),
        cut => format!("{} bytes", grouped(cut)),
    };
    let Some(file) = &captured.saved else {
        return Some(format!("[… {cut} cut; the whole output was not kept …]"));
    };
    let file = file.display();
    let whole = match tool.map(|tool| tool.max_saved) {
        Some(limit) if captured.bytes > limit => {
            format!("the first {} of the output are", format_bytes(limit))
        }
        _ => "the whole output is".to_owned(),
    };
    Some(format!("[… {cut} cut; {whole} in {file} …]"))
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
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
