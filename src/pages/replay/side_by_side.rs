//! Two texts side by side, line by line.

use std::time::{Duration, Instant};

use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};

/// Time after which a diff may be longer than it needs to be.
const MAX_DIFF_TIME: Duration = Duration::from_millis(200);
/// Equal lines that are shown before and after a change.
const CONTEXT_LINES: usize = 3;
/// Maximum number of rows of one diff.
const MAX_ROWS: usize = 400;
/// Maximum length of a line, in characters.
const MAX_CHARACTERS: usize = 2_000;

/// A row of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SideRow {
    Same(String),
    Changed(Side, Side),
    /// This many equal lines are left out.
    Omitted(usize),
}

/// One side of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Side {
    Text(String),
    Nothing,
}

/// Puts the lines of two texts side by side. Long texts are cut.
pub(crate) fn side_rows(before: &[String], after: &[String]) -> Vec<SideRow> {
    let deadline = Instant::now() + MAX_DIFF_TIME;
    let ops = capture_diff_slices_deadline(Algorithm::Myers, before, after, Some(deadline));
    let mut rows = Vec::new();
    let last = ops.len().saturating_sub(1);
    for (index, op) in ops.iter().enumerate() {
        let (old, new) = (&before[op.old_range()], &after[op.new_range()]);
        if op.tag() == DiffTag::Equal {
            push_equal(old, index > 0, index < last, &mut rows);
            continue;
        }
        for number in 0..old.len().max(new.len()) {
            rows.push(SideRow::Changed(
                side(old.get(number)),
                side(new.get(number)),
            ));
        }
    }
    if rows.len() > MAX_ROWS {
        let omitted = rows.len() - MAX_ROWS;
        rows.truncate(MAX_ROWS);
        let rest = Side::Text(format!("… {omitted} more rows"));
        rows.push(SideRow::Changed(rest.clone(), rest));
    }
    rows
}

/// Adds equal lines: only those next to a change before or after them.
fn push_equal(lines: &[String], follows: bool, precedes: bool, rows: &mut Vec<SideRow>) {
    let head = if follows {
        CONTEXT_LINES.min(lines.len())
    } else {
        0
    };
    let tail = if precedes {
        CONTEXT_LINES.min(lines.len() - head)
    } else {
        0
    };
    let omitted = lines.len() - head - tail;
    rows.extend(lines[..head].iter().map(|line| SideRow::Same(cut(line))));
    rows.extend((omitted > 0).then_some(SideRow::Omitted(omitted)));
    rows.extend(
        lines[lines.len() - tail..]
            .iter()
            .map(|line| SideRow::Same(cut(line))),
    );
}

fn side(line: Option<&String>) -> Side {
    line.map_or(Side::Nothing, |line| Side::Text(cut(line)))
}

fn cut(line: &str) -> String {
    let mut rest = line.chars();
    let mut shown: String = rest.by_ref().take(MAX_CHARACTERS).collect();
    let more = rest.count();
    if more > 0 {
        shown = format!("{shown}… {more} more characters");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.split('\n').map(str::to_owned).collect()
    }

    fn changed(before: &str, after: &str) -> SideRow {
        let side = |text: &str| match text {
            "" => Side::Nothing,
            text => Side::Text(text.to_owned()),
        };
        SideRow::Changed(side(before), side(after))
    }

    #[test]
    fn only_lines_near_a_change_are_shown() {
        let before = lines("1\n2\n3\n4\n5\n6\nold\n7");
        let after = lines("1\n2\n3\n4\n5\n6\nnew\nmore\n7");
        let same = |text: &str| SideRow::Same(text.to_owned());
        assert_eq!(
            side_rows(&before, &after),
            [
                SideRow::Omitted(3),
                same("4"),
                same("5"),
                same("6"),
                changed("old", "new"),
                changed("", "more"),
                same("7")
            ]
        );
    }

    #[test]
    fn a_diff_of_any_size_is_short() {
        let many = |word: &str| vec![word.repeat(5_000); 3_000];
        let rows = side_rows(&many("a"), &many("b"));
        assert_eq!(rows.len(), MAX_ROWS + 1);
        assert_eq!(
            rows[MAX_ROWS],
            changed("… 2600 more rows", "… 2600 more rows")
        );
        let SideRow::Changed(Side::Text(line), _) = &rows[0] else {
            panic!("{:?}", rows[0]);
        };
        assert!(line.chars().count() < 2_100 && line.ends_with("3000 more characters"));
    }
}
