//! Converts the error that stopped the YAML parser into a problem with a position and, where possible, a hint.

use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

use crate::text::line_starts;
use crate::tools_file::yaml::long_key::{MAX_KEY_CHARS, find_long_key};
use crate::tools_file::yaml::parse::{MAX_NESTING_LEVELS, MAX_NODES};
use crate::tools_file::yaml::raw_node;
use crate::types::{FileProblem, Span};

/// Converts the error that stopped the parser into a problem.
pub(crate) fn to_problem(error: &Error, text: &str) -> FileProblem {
    let span = error_span(error, text);
    if let Some(key) = find_long_key(text, span.start) {
        let message = format!("a key is longer than {MAX_KEY_CHARS} characters");
        let problem = FileProblem::error(key, message, "");
        return problem.with_hint("shorten it: YAML allows no more");
    }
    let (message, hint) = message_and_hint(error);
    let problem = FileProblem::error(span, message, "");
    match hint {
        Some(hint) => problem.with_hint(hint),
        None => problem,
    }
}

fn message_and_hint(error: &Error) -> (String, Option<&'static str>) {
    let (message, hint) = match error {
        Error::AliasError { error, .. } => return message_and_hint(error),
        Error::Budget {
            breach: BudgetBreach::Documents { .. },
            ..
        } => (
            "a second document starts here",
            "tools.yaml must be a single document",
        ),
        Error::Budget {
            breach: BudgetBreach::Depth { .. },
            ..
        } => return (depth_message(), None),
        Error::Budget {
            breach: BudgetBreach::Aliases { .. },
            ..
        }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            ("aliases expand to too many values", "write the values out")
        }
        Error::Budget { .. } => return (format!("more than {MAX_NODES} values"), None),
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            ("an anchor contains itself", "write the value out")
        }
        Error::MergeKeyNotAllowed { .. } => (
            "merge keys are not supported",
            "write the keys out, or move settings that tools share to `defaults`",
        ),
        Error::NonFiniteFloat { .. } => (
            "JSON can't represent this number",
            "put it in quotes if it is text",
        ),
        _ => return library_message_and_hint(error),
    };
    (message.to_owned(), Some(hint))
}

/// Returns the library's message, with a hint for common mistakes.
fn library_message_and_hint(error: &Error) -> (String, Option<&'static str>) {
    let message = message_without_location(error);
    // The scanner has a limit of its own, which is higher.
    if message.contains("recursion limit") {
        return (depth_message(), None);
    }
    let hint = [
        ("tabs disallowed", "indent with spaces"),
        ("quoted scalar", "is there an unclosed quote before this?"),
    ];
    let hint = hint.iter().find(|(phrase, _)| message.contains(phrase));
    (message, hint.map(|(_, hint)| *hint))
}

fn depth_message() -> String {
    format!("nested deeper than {MAX_NESTING_LEVELS} levels")
}

/// Returns the library's message without the position at its end.
fn message_without_location(error: &Error) -> String {
    let message = error.to_string();
    let end = message.find(" at line ").unwrap_or(message.len());
    message[..end].to_owned()
}

/// Returns where the parser stopped: at the byte offset if the library reports one, else at the 1-based line and
/// column.
fn error_span(error: &Error, text: &str) -> Span {
    let Some(location) = error.location() else {
        return Span::default();
    };
    let bytes = raw_node::to_span(location);
    let start = if location.span().byte_offset().is_some() {
        bytes.start
    } else {
        offset_of_position(text, location.line(), location.column())
    };
    let start = text.floor_char_boundary(start.min(text.len()));
    let len = text.ceil_char_boundary((start + bytes.len).min(text.len())) - start;
    Span { start, len }
}

fn offset_of_position(text: &str, line: u64, column: u64) -> usize {
    let before = |count: u64| usize::try_from(count.saturating_sub(1)).unwrap_or(usize::MAX);
    let mut starts = std::iter::once(0).chain(line_starts(text, 0..text.len()));
    let start = starts.nth(before(line)).unwrap_or(text.len());
    let line_text = &text[start..starts.next().unwrap_or(text.len())];
    let column = line_text.char_indices().nth(before(column));
    start + column.map_or(line_text.trim_end().len(), |(index, _)| index)
}
