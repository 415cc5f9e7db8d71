//! The report on the terminal.

use std::io::{self, Write};

use crate::replay::case::{CaseDifference, CaseResult, ReplayCase, ReplayTotals};
use crate::replay::reports::{self, ReplayReport, diff};
use toolq_core::text::{escape, paint, truncate_to_columns, wrap_words};
use toolq_core::types::CallRef;

/// Maximum number of differences shown.
const MAX_DIFFERENCES: usize = 50;

/// The report on the terminal: each difference as it is found, with a short diff.
pub struct TerminalReport {
    out: Box<dyn Write + Send>,
    color: bool,
    columns: usize,
    is_terminal: bool,
    /// Whether to show results that are stale but don't make the replay fail.
    shows_stale: bool,
    shown_count: usize,
    omitted_count: usize,
    omitted_stale_count: usize,
}

impl TerminalReport {
    /// Creates a report that is written to `out` as it goes, with lines of at most `columns` columns if that `is_terminal`.
    /// `shows_stale` is whether it lists stale results that don't make the replay fail.
    pub fn new(
        out: Box<dyn Write + Send>,
        color: bool,
        columns: usize,
        is_terminal: bool,
        shows_stale: bool,
    ) -> Self {
        Self {
            out,
            color,
            columns,
            is_terminal,
            shows_stale,
            shown_count: 0,
            omitted_count: 0,
            omitted_stale_count: 0,
        }
    }

    /// Prints a difference. Errors are ignored: there is no place left to report them.
    fn show_difference(&mut self, case: &ReplayCase<'_>, difference: &CaseDifference) {
        if self.shown_count == MAX_DIFFERENCES {
            self.omitted_count += 1;
            return;
        }
        self.shown_count += 1;
        let place = self.place_label(case);
        let mut text = self.wrap(&format!(
            "{place}: {}",
            reports::difference_label(difference)
        ));
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

impl TerminalReport {
    fn place_label(&self, case: &ReplayCase<'_>) -> String {
        let call = case.call;
        let place = format!(
            "{}: turn {}, {} ({})",
            case.file, call.turn, call.tool_name, call.tool_use_id
        );
        paint(&escape(&place), "1", self.color)
    }

    /// Wraps a line between words, on a terminal.
    fn wrap(&self, line: &str) -> String {
        if self.is_terminal {
            wrap_words(line, self.columns, "  ") + "\n"
        } else {
            format!("{line}\n")
        }
    }

    /// Prints that a result is stale. Errors are ignored, as for differences.
    fn show_stale(&mut self, case: &ReplayCase<'_>, after: &CallRef) {
        if self.shown_count == MAX_DIFFERENCES {
            self.omitted_stale_count += 1;
            return;
        }
        self.shown_count += 1;
        let place = self.place_label(case);
        let label = paint(&escape(&reports::stale_label(after)), "2", self.color);
        let _ = self
            .out
            .write_all(self.wrap(&format!("{place}: {label}")).as_bytes());
    }
}

impl ReplayReport for TerminalReport {
    fn add_case(&mut self, case: &ReplayCase<'_>) -> io::Result<()> {
        for difference in case.result.failures() {
            self.show_difference(case, difference);
        }
        if let CaseResult::Stale {
            after,
            is_failure: false,
            ..
        } = &case.result
            && self.shows_stale
        {
            self.show_stale(case, after);
        }
        Ok(())
    }

    fn finish(&mut self, _: &ReplayTotals, _: &mut dyn Write) -> io::Result<()> {
        if self.omitted_count > 0 {
            let _ = writeln!(
                self.out,
                "… and {} more; `--json FILE` writes all of them",
                self.omitted_count
            );
        }
        if self.omitted_stale_count > 0 {
            let _ = writeln!(self.out, "… and {} more stale", self.omitted_stale_count);
        }
        Ok(())
    }
}
