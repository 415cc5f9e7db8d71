//! Short line diffs of recorded and current values.

use std::fmt::Write as _;

use crate::replay::case::{CaseDifference, DifferenceKind};
use toolq_core::json::{JsonText, to_json_line};
use toolq_core::text::escape;

/// Maximum number of lines shown per side.
const MAX_LINES: usize = 8;
/// Maximum number of characters shown per line.
const MAX_CHARACTERS: usize = 200;
/// Number of characters shown before the first difference in a long line.
const CONTEXT_CHARACTERS: usize = 40;

/// Joins the lines of a diff into one text.
pub(crate) fn join_lines(lines: &[DiffLine]) -> String {
    let lines = lines.iter().map(DiffLine::to_text);
    lines.collect::<Vec<String>>().join("\n")
}

/// A line of a diff, or the number of lines left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DiffLine {
    /// `-` for recorded, `+` for current, ` ` for both.
    pub(super) sign: char,
    /// Escaped text, without line breaks or control characters.
    pub(super) text: String,
}

impl DiffLine {
    /// Formats the line for a report.
    pub(super) fn to_text(&self) -> String {
        let line = format!("{} {}", self.sign, self.text);
        line.trim_end().to_owned()
    }
}

/// Returns the diff of a difference. For an input, that is only the rejected value.
pub(crate) fn diff_lines(difference: &CaseDifference) -> Vec<DiffLine> {
    let (before, after) = match difference.kind {
        DifferenceKind::Missing | DifferenceKind::UnknownTool => return Vec::new(),
        DifferenceKind::Schema => (
            None,
            difference
                .actual
                .as_deref()
                .filter(|_| !difference.path.is_empty()),
        ),
        DifferenceKind::Result => (difference.expected.as_deref(), difference.actual.as_deref()),
    };
    let (before, after) = (value_lines(before), value_lines(after));
    let is_same = |(one, other): &(&String, &String)| one == other;
    let common_prefix = before.iter().zip(&after).take_while(is_same).count();
    let rest_reversed = before[common_prefix..]
        .iter()
        .rev()
        .zip(after[common_prefix..].iter().rev());
    let common_suffix = rest_reversed.take_while(is_same).count();
    let (old, new) = (
        &before[common_prefix..before.len() - common_suffix],
        &after[common_prefix..after.len() - common_suffix],
    );

    let mut lines = Vec::new();
    if common_prefix > 0 && !before[common_prefix - 1].trim().is_empty() {
        lines.push(truncated_line(' ', &before[common_prefix - 1], 0));
    }
    lines.extend(side_lines('-', old, new));
    lines.extend(side_lines('+', new, old));
    lines
}

/// Returns the lines of one side. `other` is used to find where long lines differ.
fn side_lines<'l>(
    sign: char,
    own: &'l [String],
    other: &'l [String],
) -> impl Iterator<Item = DiffLine> + 'l {
    let shown = own
        .iter()
        .take(MAX_LINES)
        .enumerate()
        .map(move |(index, text)| {
            let first_difference = other
                .get(index)
                .map_or(0, |other| common_prefix_len(text, other));
            truncated_line(sign, text, first_difference)
        });
    let more = own.len().saturating_sub(MAX_LINES);
    let left_out = (more > 0).then(|| DiffLine {
        sign,
        text: format!("… {more} more line{}", if more == 1 { "" } else { "s" }),
    });
    shown.chain(left_out)
}

/// Cuts a long text to the part around the first difference.
fn truncated_line(sign: char, text: &str, first_difference: usize) -> DiffLine {
    let skipped = if text.chars().nth(MAX_CHARACTERS).is_some() {
        first_difference.saturating_sub(CONTEXT_CHARACTERS)
    } else {
        0
    };
    let mut rest = text.chars().skip(skipped);
    let mut shown: String = rest.by_ref().take(MAX_CHARACTERS).collect();
    if skipped > 0 {
        shown.insert(0, '…');
    }
    let more = rest.count();
    if more > 0 {
        let plural = if more == 1 { "" } else { "s" };
        let _ = write!(shown, "… {more} more character{plural}");
    }
    DiffLine {
        sign,
        text: escape(&shown).into_owned(),
    }
}

/// Returns the number of characters that two texts have in common at their start.
fn common_prefix_len(one: &str, other: &str) -> usize {
    let pairs = one.chars().zip(other.chars());
    pairs.take_while(|(one, other)| one == other).count()
}

/// Splits a text into its lines. Any other value becomes a single line.
fn value_lines(json: Option<&str>) -> Vec<String> {
    let Some(json) = json else {
        return Vec::new();
    };
    let value = JsonText::new(json);
    if let Some(text) = value.to_text() {
        let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
        if lines.len() == 1 && lines[0].is_empty() {
            "(empty)".clone_into(&mut lines[0]);
        }
        return lines;
    }
    let flagged = value.object().and_then(|flagged| {
        let (error, content) = (flagged.get("is_error")?, flagged.get("content")?);
        let label = if error.get() == "true" {
            "(an error)"
        } else {
            "(no error)"
        };
        Some((label, content)).filter(|_| flagged.members().len() == 2)
    });
    match flagged {
        Some((label, content)) => {
            let mut lines = value_lines(Some(content.get()));
            lines.insert(0, label.to_owned());
            lines
        }
        None => vec![to_json_line(json).into_owned()],
    }
}
