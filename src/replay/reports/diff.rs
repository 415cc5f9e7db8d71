//! Short line diffs of recorded and current values.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};

use crate::replay::case::{CaseDifference, DifferenceKind};
use toolq_core::json::{JsonText, to_json_line};
use toolq_core::text::{escape, format_count};

/// Maximum number of lines shown per side.
const MAX_LINES: usize = 8;
/// Time after which a diff may be longer than it needs to be.
const MAX_DIFF_TIME: Duration = Duration::from_millis(200);
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
pub(crate) struct DiffLine {
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
    let (recorded, current) = match difference.kind {
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
    let (recorded, current) = (value_lines(recorded), value_lines(current));
    let mut diff = ShortDiff::default();
    let deadline = Instant::now() + MAX_DIFF_TIME;
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &recorded, &current, Some(deadline));
    for op in ops.iter().filter(|op| op.tag() != DiffTag::Equal) {
        let (removed, added) = (&recorded[op.old_range()], &current[op.new_range()]);
        let context = op.old_range().start.checked_sub(1);
        diff.add_context(context.map(|index| recorded[index].as_str()));
        diff.add_side('-', removed, added);
        diff.add_side('+', added, removed);
    }
    let mut lines = diff.finish();
    if difference.kind == DifferenceKind::Schema {
        // It was recorded, and is shown to be found.
        for line in &mut lines {
            line.sign = ' ';
        }
    }
    lines
}

/// A diff of limited length.
#[derive(Default)]
struct ShortDiff {
    lines: Vec<DiffLine>,
    removed: SideCount,
    added: SideCount,
}

/// Number of lines of one side.
#[derive(Default)]
struct SideCount {
    shown: usize,
    omitted: usize,
}

impl ShortDiff {
    /// Adds the line before a change, unless nothing more is shown.
    fn add_context(&mut self, line: Option<&str>) {
        let has_space = self.removed.shown < MAX_LINES && self.added.shown < MAX_LINES;
        if let Some(line) = line.filter(|line| has_space && !line.trim().is_empty()) {
            self.lines.push(truncated_line(' ', line, 0));
        }
    }

    /// Adds the lines of one side of a change. `other` is used to find where long lines differ.
    fn add_side(&mut self, sign: char, own: &[String], other: &[String]) {
        let count = match sign {
            '-' => &mut self.removed,
            _ => &mut self.added,
        };
        let space = MAX_LINES - count.shown;
        for (index, text) in own.iter().enumerate().take(space) {
            let first_difference = other
                .get(index)
                .map_or(0, |other| common_prefix_len(text, other));
            self.lines
                .push(truncated_line(sign, text, first_difference));
            count.shown += 1;
        }
        count.omitted += own.len().saturating_sub(space);
    }

    /// Returns the lines, with the numbers of those that were left out.
    fn finish(mut self) -> Vec<DiffLine> {
        for (sign, count) in [('-', &self.removed), ('+', &self.added)] {
            let more = count.omitted;
            if more > 0 {
                let text = format!("… {}", format_count(more as u64, "more line"));
                self.lines.push(DiffLine { sign, text });
            }
        }
        self.lines
    }
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
        let _ = write!(shown, "… {}", format_count(more as u64, "more character"));
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
pub(super) fn value_lines(json: Option<&str>) -> Vec<String> {
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
