//! The HTML report, a page for the reviewer of a CI run.

use std::collections::HashSet;
use std::io::{self, Write};

use crate::pages::{ReplayRow, ReplayState, input_beginning, replay_page, side_rows};
use crate::replay::case::{CaseDifference, CaseResult, DifferenceKind, ReplayCase, ReplayTotals};
use crate::replay::reports::diff::value_lines;
use crate::replay::reports::{self, ReplayReport};

/// Maximum number of calls that have a row.
const MAX_ROWS: usize = 20_000;
/// Maximum number of calls whose values are shown.
const MAX_DIFFS: usize = 1_000;

/// The HTML report. Its size is bounded, regardless of what is replayed.
#[derive(Default)]
pub struct HtmlReport {
    rows: Vec<ReplayRow>,
    diffs: usize,
    omitted: usize,
    unreadable: Vec<String>,
}

impl HtmlReport {
    fn finding(
        &mut self,
        difference: &CaseDifference,
        tool_name: &str,
    ) -> (String, Vec<crate::pages::SideRow>) {
        let label = reports::difference_label(difference);
        // A value that isn't known may be missing from the input, as the label then says.
        let has_no_values =
            difference.kind == DifferenceKind::Schema && difference.actual.is_none();
        if has_no_values || self.diffs == MAX_DIFFS {
            return (label, Vec::new());
        }
        self.diffs += 1;
        let expected = value_lines(difference.expected.as_deref());
        let actual = value_lines(difference.actual.as_deref());
        let line = |text: &str| vec![text.to_owned()];
        let (before, after) = match difference.kind {
            DifferenceKind::Result => (expected, actual),
            // The input is the recorded one. What is expected of it is a rule of the current tool.
            DifferenceKind::Schema => (actual, expected),
            DifferenceKind::UnknownTool => (line(tool_name), expected),
            DifferenceKind::Missing => (line("(no result)"), line("(not run)")),
        };
        let shown = |lines: Vec<String>| {
            if lines.is_empty() {
                line("(nothing)")
            } else {
                lines
            }
        };
        (label, side_rows(&shown(before), &shown(after)))
    }
}

impl ReplayReport for HtmlReport {
    fn add_case(&mut self, case: &ReplayCase<'_>) -> io::Result<()> {
        let (state, differences, note) = match &case.result {
            CaseResult::Matched => (ReplayState::Matches, &[][..], None),
            CaseResult::Served => (ReplayState::Served, &[][..], None),
            CaseResult::Incomplete(_) => (ReplayState::NotCompared, &[][..], None),
            CaseResult::Differs(differences) => (ReplayState::Differs, &differences[..], None),
            CaseResult::Stale {
                after,
                differences,
                is_failure,
            } => {
                let state = if *is_failure {
                    ReplayState::Differs
                } else {
                    ReplayState::Stale
                };
                (state, &differences[..], Some(reports::stale_label(after)))
            }
        };
        if self.rows.len() >= MAX_ROWS {
            self.omitted += 1;
            return Ok(());
        }
        let mut findings: Vec<_> = note.into_iter().map(|note| (note, Vec::new())).collect();
        for difference in differences {
            findings.push(self.finding(difference, &case.call.tool_name));
        }
        self.rows.push(ReplayRow {
            file: case.file.to_owned(),
            turn: case.call.turn,
            tool_use_id: case.call.tool_use_id.clone(),
            tool_name: case.call.tool_name.to_string(),
            input: input_beginning(case.input),
            state,
            findings,
        });
        Ok(())
    }

    fn add_unreadable(&mut self, _: &str, message: &str) -> io::Result<()> {
        if self.unreadable.len() < MAX_ROWS {
            self.unreadable.push(message.to_owned());
        }
        Ok(())
    }

    fn finish(&mut self, totals: &ReplayTotals, out: &mut dyn Write) -> io::Result<()> {
        put_differences_first(&mut self.rows);
        let totals = reports::totals_label(totals);
        let page = replay_page(&self.rows, &totals, &self.unreadable, self.omitted);
        out.write_all(page.as_bytes())
    }
}

/// Moves the recordings with differences before the others, and in each, the calls that differ before the others.
fn put_differences_first(rows: &mut [ReplayRow]) {
    let differing = rows.iter().filter(|row| row.state == ReplayState::Differs);
    let files: HashSet<String> = differing.map(|row| row.file.clone()).collect();
    rows.sort_by_key(|row| !files.contains(&row.file));
    for file in rows.chunk_by_mut(|one, other| one.file == other.file) {
        file.sort_by_key(|row| row.state.min(ReplayState::Matches));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_come_first_and_the_rest_keeps_its_order() {
        use ReplayState::{Differs, Matches, Served, Stale};
        let row = |(turn, (file, state)): (usize, (&str, ReplayState))| ReplayRow {
            file: file.to_owned(),
            turn,
            tool_use_id: String::new(),
            tool_name: String::new(),
            input: String::new(),
            state,
            findings: Vec::new(),
        };
        let rows = [
            ("a", Served),
            ("a", Matches),
            ("b", Matches),
            ("b", Stale),
            ("b", Differs),
            ("c", Matches),
        ];
        let mut rows: Vec<ReplayRow> = rows.into_iter().enumerate().map(row).collect();
        put_differences_first(&mut rows);
        let order: Vec<usize> = rows.iter().map(|row| row.turn).collect();
        assert_eq!(order, [4, 3, 2, 0, 1, 5]);
    }
}
