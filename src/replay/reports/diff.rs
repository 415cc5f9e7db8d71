//! Two values as lines: what was recorded, and what is there today. Only what differs is shown, and never much of it.

use std::fmt::Write as _;

use crate::replay::case::{Difference, Kind};
use toolq_core::json::{Json, json_line};
use toolq_core::text::escape;

/// Lines of either side that are shown.
const LINES: usize = 8;
/// Characters of a line that are shown.
const CHARACTERS: usize = 200;
/// Characters that are shown before the first one that differs.
const BEFORE: usize = 40;

/// The same as one text.
pub(crate) fn text(lines: &[Line]) -> String {
    let lines = lines.iter().map(Line::shown);
    lines.collect::<Vec<String>>().join("\n")
}

/// A line of a diff: `-` recorded, `+` today, ` ` both, or a word about what is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) sign: char,
    /// Nothing in it moves a cursor or ends a line.
    pub(super) text: String,
}

impl Line {
    /// As it stands in a report.
    pub(super) fn shown(&self) -> String {
        let line = format!("{} {}", self.sign, self.text);
        line.trim_end().to_owned()
    }
}

/// The diff of a difference; of an input only the value that is refused.
pub(crate) fn lines(difference: &Difference) -> Vec<Line> {
    let (before, after) = match difference.kind {
        Kind::Missing | Kind::UnknownTool => return Vec::new(),
        Kind::Schema => (
            None,
            difference
                .actual
                .as_deref()
                .filter(|_| !difference.path.is_empty()),
        ),
        Kind::Result => (difference.expected.as_deref(), difference.actual.as_deref()),
    };
    let (before, after) = (readable(before), readable(after));
    let alike = |(one, other): &(&String, &String)| one == other;
    let begin = before.iter().zip(&after).take_while(alike).count();
    let ends = before[begin..]
        .iter()
        .rev()
        .zip(after[begin..].iter().rev());
    let end = ends.take_while(alike).count();
    let (old, new) = (
        &before[begin..before.len() - end],
        &after[begin..after.len() - end],
    );

    let mut lines = Vec::new();
    if begin > 0 && !before[begin - 1].trim().is_empty() {
        lines.push(line(' ', &before[begin - 1], 0));
    }
    lines.extend(side('-', old, new));
    lines.extend(side('+', new, old));
    lines
}

/// The lines of one side, those of the other beside them.
fn side<'l>(sign: char, own: &'l [String], other: &'l [String]) -> impl Iterator<Item = Line> + 'l {
    let shown = own
        .iter()
        .take(LINES)
        .enumerate()
        .map(move |(index, text)| {
            let first = other
                .get(index)
                .map_or(0, |other| first_difference(text, other));
            line(sign, text, first)
        });
    let more = own.len().saturating_sub(LINES);
    let left_out = (more > 0).then(|| Line {
        sign,
        text: format!("… {more} more line{}", if more == 1 { "" } else { "s" }),
    });
    shown.chain(left_out)
}

/// The part of a text around the character `first`.
fn line(sign: char, text: &str, first: usize) -> Line {
    let skipped = if text.chars().nth(CHARACTERS).is_some() {
        first.saturating_sub(BEFORE)
    } else {
        0
    };
    let mut rest = text.chars().skip(skipped);
    let mut shown: String = rest.by_ref().take(CHARACTERS).collect();
    if skipped > 0 {
        shown.insert(0, '…');
    }
    let more = rest.count();
    if more > 0 {
        let _ = write!(shown, "… {more} more characters");
    }
    Line {
        sign,
        text: escape(&shown).into_owned(),
    }
}

/// How many characters two texts begin with alike.
fn first_difference(one: &str, other: &str) -> usize {
    let pairs = one.chars().zip(other.chars());
    pairs.take_while(|(one, other)| one == other).count()
}

/// A value as lines: a text by its own, anything else on one.
fn readable(json: Option<&str>) -> Vec<String> {
    let Some(json) = json else {
        return Vec::new();
    };
    let value = Json::new(json);
    if let Some(text) = value.text() {
        let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
        if lines.len() == 1 && lines[0].is_empty() {
            "(empty)".clone_into(&mut lines[0]);
        }
        return lines;
    }
    let ended = value.object().and_then(|ended| {
        let (error, content) = (ended.get("is_error")?, ended.get("content")?);
        let word = if error.get() == "true" {
            "(an error)"
        } else {
            "(no error)"
        };
        Some((word, content)).filter(|_| ended.members().len() == 2)
    });
    match ended {
        Some((word, content)) => {
            let mut lines = readable(Some(content.get()));
            lines.insert(0, word.to_owned());
            lines
        }
        None => vec![json_line(json).into_owned()],
    }
}
