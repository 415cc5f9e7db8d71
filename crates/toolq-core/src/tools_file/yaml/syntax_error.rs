//! What stopped the YAML reader → a problem at its place, in words that name the limit or the cure.

use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

use crate::tools_file::yaml::parse::{MAX_DEPTH, MAX_NODES};
use crate::tools_file::yaml::reader;
use crate::types::{Problem, Span};

/// The problem that stopped the reader.
pub(crate) fn problem(error: &Error, text: &str) -> Problem {
    let (message, hint) = words(error);
    let problem = Problem::error(place(error, text), message, "");
    match hint {
        Some(hint) => problem.with_hint(hint),
        None => problem,
    }
}

fn words(error: &Error) -> (String, Option<&'static str>) {
    let (message, hint) = match error {
        Error::AliasError { error, .. } => return words(error),
        Error::Budget {
            breach: BudgetBreach::Documents { .. },
            ..
        } => ("a second document begins", "tools.yaml is one document"),
        Error::Budget {
            breach: BudgetBreach::Depth { .. },
            ..
        } => return (format!("nested deeper than {MAX_DEPTH} levels"), None),
        Error::Budget {
            breach: BudgetBreach::Aliases { .. },
            ..
        }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => (
            "aliases repeat more than a file of tools can mean",
            "write the values out",
        ),
        Error::Budget { .. } => return (format!("more than {MAX_NODES} values"), None),
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            ("an anchor holds itself", "write the value out")
        }
        Error::MergeKeyNotAllowed { .. } => (
            "merge keys are not taken",
            "write the keys out, or put what tools share into `defaults`",
        ),
        Error::UnsupportedTag { .. } => (
            "tags are not taken",
            crate::tools_file::yaml::parse::NO_TAGS,
        ),
        Error::NonFiniteFloat { .. } => ("JSON has no such number", "quote it where it is text"),
        _ => return own_words(error),
    };
    (message.to_owned(), Some(hint))
}

/// The library's words, and what is to be done where they are of something that happens often.
fn own_words(error: &Error) -> (String, Option<&'static str>) {
    let words = bare(error);
    let hint = [
        ("tabs disallowed", "indent with spaces"),
        ("quoted scalar", "is a quote before it not closed?"),
    ];
    let hint = hint.iter().find(|(said, _)| words.contains(said));
    (words, hint.map(|(_, hint)| *hint))
}

/// The library's own words without the place that it puts behind them.
fn bare(error: &Error) -> String {
    let words = error.to_string();
    let end = words.find(" at line ").unwrap_or(words.len());
    words[..end].to_owned()
}

/// Where the reader stopped: in bytes where it tells them, else by line and column, both counted from 1.
fn place(error: &Error, text: &str) -> Span {
    let Some(location) = error.location() else {
        return Span::default();
    };
    let bytes = reader::span(location);
    let start = if location.span().byte_offset().is_some() {
        bytes.start
    } else {
        offset(text, location.line(), location.column())
    };
    let start = text.floor_char_boundary(start.min(text.len()));
    let len = text.ceil_char_boundary((start + bytes.len).min(text.len())) - start;
    Span { start, len }
}

fn offset(text: &str, line: u64, column: u64) -> usize {
    let before = |count: u64| usize::try_from(count.saturating_sub(1)).unwrap_or(usize::MAX);
    let mut lines = text.split_inclusive('\n');
    let start: usize = lines.by_ref().take(before(line)).map(str::len).sum();
    let inside = lines.next().unwrap_or_default();
    let column = inside.char_indices().nth(before(column));
    start + column.map_or(inside.trim_end().len(), |(index, _)| index)
}
