//! The Markdown report, a summary for the page of a CI run.

use std::fmt::Write as _;
use std::io::{self, Write};

use maud::html;

use crate::replay::case::{CaseDifference, ReplayCase, ReplayTotals};
use crate::replay::reports::{self, ReplayReport, diff};
use toolq_core::text::escape;

/// Maximum number of differences listed.
const MAX_ROWS: usize = 100;
/// Maximum number of differences shown with their values.
const MAX_DIFFS: usize = 20;

/// The Markdown report. It stays far below GitHub's limit of 1 MiB.
#[derive(Default)]
pub struct MarkdownReport {
    rows: Vec<String>,
    diffs: Vec<String>,
    /// Number of differences that aren't listed.
    omitted_count: usize,
    unreadable: Vec<String>,
}

impl MarkdownReport {
    fn add_difference(&mut self, case: &ReplayCase<'_>, difference: &CaseDifference) {
        if self.rows.len() == MAX_ROWS {
            self.omitted_count += 1;
            return;
        }
        let call = case.call;
        self.rows.push(format!(
            "| {} | {} | {} | {} |",
            escape_cell(case.file),
            call.turn,
            escape_cell(&call.tool_name),
            escape_cell(&reports::difference_label(difference))
        ));
        let lines = diff::diff_lines(difference);
        if lines.is_empty() || self.diffs.len() == MAX_DIFFS {
            return;
        }
        let lines = diff::join_lines(&lines);
        let fence = fence_around(&lines);
        // It is HTML, in which a backslash escapes nothing.
        let (turn, name, id) = (call.turn, &call.tool_name, &call.tool_use_id);
        let title = format!("{}, turn {turn}, {name} {id}", case.file);
        let summary = html! { summary { (escape(&title)) } }.into_string();
        let summary = summary.replace('@', "&#64;");
        self.diffs.push(format!(
            "<details>{summary}\n\n{fence}diff\n{lines}\n{fence}\n\n</details>"
        ));
    }
}

impl ReplayReport for MarkdownReport {
    fn add_case(&mut self, case: &ReplayCase<'_>) -> io::Result<()> {
        for difference in case.result.failures() {
            self.add_difference(case, difference);
        }
        Ok(())
    }

    fn add_unreadable(&mut self, _: &str, message: &str) -> io::Result<()> {
        if self.unreadable.len() < MAX_ROWS {
            self.unreadable.push(format!("- {}", escape_cell(message)));
        }
        Ok(())
    }

    fn finish(&mut self, totals: &ReplayTotals, out: &mut dyn Write) -> io::Result<()> {
        let title = match totals.differing {
            0 if !self.unreadable.is_empty() => "some recordings can't be read".to_owned(),
            0 if totals.stale > 0 => "no call differs, some are stale".to_owned(),
            0 if totals.unrecorded > 0 => {
                "no call differs, some have no recorded result".to_owned()
            }
            0 if totals.served > 0 => "no call differs, some were not run".to_owned(),
            0 => "all calls match".to_owned(),
            1 if totals.calls == 1 => "1 of 1 call differs".to_owned(),
            1 => format!("1 of {} calls differs", totals.calls),
            differing => format!("{differing} of {} calls differ", totals.calls),
        };
        let mut page = format!(
            "### toolq replay: {title}\n\n{}.\n",
            reports::totals_label(totals)
        );
        if !self.unreadable.is_empty() {
            let _ = write!(page, "\n{}\n", self.unreadable.join("\n"));
        }
        if !self.rows.is_empty() {
            page += "\n| file | turn | tool | what |\n| --- | --- | --- | --- |\n";
            let _ = writeln!(page, "{}", self.rows.join("\n"));
        }
        if self.omitted_count > 0 {
            let _ = write!(page, "\n… and {} more.\n", self.omitted_count);
        }
        for diff in &self.diffs {
            let _ = write!(page, "\n{diff}\n");
        }
        out.write_all(page.as_bytes())
    }
}

/// Escapes a text for a table cell, so that it isn't interpreted as markup.
fn escape_cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len());
    for c in escape(text).chars().take(300) {
        match c {
            '&' => cell.push_str("&amp;"),
            '<' => cell.push_str("&lt;"),
            '>' => cell.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' => cell.extend(['\\', c]),
            '@' => cell.push_str("&#64;"),
            c => cell.push(c),
        }
    }
    cell
}

/// Returns a code fence that doesn't occur in `text`.
fn fence_around(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    fence
}
