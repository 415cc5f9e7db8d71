//! Progress for people while calls run: bars on a terminal, lines elsewhere.

mod bar_styles;
mod bars;
pub(crate) mod call_caption;
mod failure_list;
mod lines;
mod repeat_command;
mod screen;
mod summary;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::terminal::call_caption::MAX_MASKED_BYTES;
use redact::Mask;
use toolq_core::json::{Input, join_json_lines};
use toolq_core::text::{escape, truncate_to_columns};
use toolq_core::types::{CallKey, CallRef, CheckedCall};

pub(crate) use bar_styles::BarOptions;
pub(crate) use bars::{MAX_FRAMES_PER_SECOND, ProgressBars};
pub(crate) use call_caption::{CallLabels, PROBING_LABEL, PartialCallLabels};
pub(crate) use failure_list::{FailureList, OutcomeTally, calls_label};
pub(crate) use lines::ProgressLines;
pub(crate) use repeat_command::RepeatCommand;
pub(crate) use screen::ProgressScreen;
pub(crate) use summary::RunSummary;

/// What a row or line of progress is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum RowKey {
    Call(CallKey),
    /// The `describe` program of the tool with this name.
    Describe(String),
    /// A server that is listing its tools.
    Server(String),
}

fn row_key(call: &CallRef) -> RowKey {
    RowKey::Call(call.key())
}

/// Returns whether a batch consists of an agent's calls. Only the calls of the input are counted.
fn is_agent_batch(calls: &[CallRef]) -> bool {
    calls.first().is_some_and(|call| call.parent.is_some())
}

/// Formats the name of a call after those of its parent agents: `invoke_expert › search`.
fn call_path(call: &CallRef, name: &str) -> String {
    call.ancestors().fold(name.to_owned(), |name, agent| {
        format!("{} › {name}", agent.tool_name)
    })
}

/// The indentation of continuation lines, if a line is too long for the terminal.
const WRAPPED_LINE_INDENT: &str = "    ";

/// Maximum width of what a line says about the input and the failure of a call.
const MAX_SUBJECT_COLUMNS: usize = 72;
/// The same where lines have no width, as in a pipe.
const MAX_PIPED_SUBJECT_COLUMNS: usize = 1_000;
const MAX_CAUSE_COLUMNS: usize = 160;

/// Formats a line about a call that didn't succeed, after the word for that: `fetch toolu_7 {"url":"http://…"}: HTTP 503, 2s:
/// overloaded`. The arguments are already safe to show, except for `cause`.
fn failure_line(
    name: &str,
    subject: &str,
    label: &str,
    cause: Option<&str>,
    mask: &Mask,
) -> String {
    let cause = cause.map(|cause| mask_and_escape(cause, mask));
    let cause = cause
        .as_deref()
        .map(|cause| truncate_to_columns(cause, MAX_CAUSE_COLUMNS));
    let mut line = format!("{name} {subject}");
    let label = Some(label).filter(|label| !label.is_empty());
    for part in label.into_iter().chain(cause.as_deref()) {
        line.push_str(": ");
        line.push_str(part);
    }
    line
}

/// Makes the subject of a call safe to show, and short.
fn short_subject(labels: &CallLabels, mask: &Mask, columns: usize) -> String {
    truncate_closed(&mask_and_escape(&labels.subject, mask), columns).into_owned()
}

/// Returns the beginning of a call's input, safe to show, or nothing for an empty one.
fn short_input(checked: &CheckedCall, mask: &Mask, columns: usize) -> String {
    let input = checked.call.input.as_ref().map_or("", Input::text);
    if input == "{}" {
        return String::new();
    }
    let beginning = &input[..input.floor_char_boundary(MAX_MASKED_BYTES)];
    let input = mask_and_escape(&join_json_lines(beginning), mask);
    truncate_closed(&input, columns).into_owned()
}

/// Cuts JSON or a text in parentheses, but keeps its closing characters, so that it can't be confused with what follows:
/// `{"path":"a…"}`.
fn truncate_closed(text: &str, columns: usize) -> Cow<'_, str> {
    let cut = truncate_to_columns(text, columns);
    let end = match text.chars().next_back() {
        Some(')') => ")",
        _ if text.contains('{') => "\"}",
        _ => "",
    };
    if matches!(cut, Cow::Borrowed(_)) || end.is_empty() {
        return cut;
    }
    let cut = truncate_to_columns(text, columns.saturating_sub(end.len()));
    let is_in_string = end == ")" || ends_in_string(&cut);
    let end = if is_in_string { end } else { "}" };
    Cow::Owned(format!("{cut}{end}"))
}

/// Returns whether this beginning of a JSON text ends in a string.
fn ends_in_string(json: &str) -> bool {
    let (mut is_in_string, mut is_escaped) = (false, false);
    for c in json.chars() {
        is_in_string ^= c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
    }
    is_in_string
}

/// Makes a text safe to show.
fn mask_and_escape(text: &str, mask: &Mask) -> String {
    escape(&mask.apply(text)).into_owned()
}
