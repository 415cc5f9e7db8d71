//! The report on the terminal.

use std::io::{self, Write};

use crate::replay::case::{CaseDifference, CaseResult, ReplayCase, ReplayTotals};
use crate::replay::reports::ReplayReport;
use crate::replay::reports::diff;
use crate::replay::reports::labels;
use toolq_core::text::{escape, paint, truncate_to_columns};

/// Maximum number of differences shown.
const MAX_DIFFERENCES: usize = 50;

/// The report on the terminal: each difference as it is found, with a short diff.
pub struct TerminalReport {
    out: Box<dyn Write>,
    color: bool,
    columns: usize,
    shown_count: usize,
    omitted_count: usize,
}

impl TerminalReport {
    /// Creates a report that is written to `out` as it goes, with lines of at most `columns` columns.
    pub fn new(out: Box<dyn Write>, color: bool, columns: usize) -> Self {
        Self {
            out,
            color,
            columns,
            shown_count: 0,
            omitted_count: 0,
        }
    }

    /// Prints a difference. Errors are ignored: there is no place left to report them.
    fn show_difference(&mut self, case: &ReplayCase<'_>, difference: &CaseDifference) {
        if self.shown_count == MAX_DIFFERENCES {
            self.omitted_count += 1;
            return;
        }
        self.shown_count += 1;
        let call = case.call;
        let place = format!(
            "{}: turn {}, {} ({})",
            case.file, call.turn, call.tool_name, call.tool_use_id
        );
        let place = paint(&escape(&place), "1", self.color);
        let mut text = format!("{place}: {}\n", labels::difference_label(difference));
        for line in diff::diff_lines(difference) {
            let style = match line.sign {
                '-' => "31",
                '+' => "32",
                _ => "2",
            };
            let line = format!("  {}", line.to_text());
            text += &paint(&truncate_to_columns(&line, self.columns), style, self.color);
            text.push('\n');
        }
        let _ = self.out.write_all(text.as_bytes());
    }
}

impl ReplayReport for TerminalReport {
    fn add_case(&mut self, case: &ReplayCase<'_>) -> io::Result<()> {
        if let CaseResult::Differs(differences) = &case.result {
            for difference in differences {
                self.show_difference(case, difference);
            }
        }
        Ok(())
    }

    /// Does nothing: the command prints an error.
    fn add_unreadable(&mut self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &ReplayTotals) -> io::Result<()> {
        if self.omitted_count > 0 {
            let _ = writeln!(
                self.out,
                "… and {} more; `--json FILE` writes all of them",
                self.omitted_count
            );
        }
        Ok(())
    }
}
