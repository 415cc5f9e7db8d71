//! A summary for the page of a CI run.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::replay::case::{Case, Difference, End, Totals};
use crate::replay::reports::Report;
use crate::replay::reports::diff;
use crate::replay::reports::labels;
use toolq_core::text::escape;

/// Differences that are listed.
const ROWS: usize = 100;
/// Differences whose values are shown.
const DIFFS: usize = 20;

/// The report for a page of Markdown. It stays far below the 1 MiB that GitHub takes.
pub struct MarkdownReport {
    rows: Vec<String>,
    diffs: Vec<String>,
    /// Differences that are not listed.
    more: usize,
    unreadable: Vec<String>,
    out: Box<dyn Write>,
}

impl MarkdownReport {
    /// A report that goes to `out` when all is told.
    pub fn new(out: Box<dyn Write>) -> Self {
        Self {
            rows: Vec::new(),
            diffs: Vec::new(),
            more: 0,
            unreadable: Vec::new(),
            out,
        }
    }

    fn difference(&mut self, case: &Case<'_>, difference: &Difference) {
        if self.rows.len() == ROWS {
            self.more += 1;
            return;
        }
        let call = case.call;
        self.rows.push(format!(
            "| {} | {} | {} | {} |",
            cell(case.file),
            call.turn,
            cell(&call.tool_name),
            cell(&labels::headline(difference))
        ));
        let lines = diff::lines(difference);
        if lines.is_empty() || self.diffs.len() == DIFFS {
            return;
        }
        let lines = diff::text(&lines);
        let fence = fence(&lines);
        self.diffs.push(format!(
            "<details><summary>{}, turn {}, {}</summary>\n\n{fence}diff\n{lines}\n{fence}\n\n</details>",
            cell(case.file),
            call.turn,
            cell(&call.tool_name)
        ));
    }
}

impl Report for MarkdownReport {
    fn case(&mut self, case: &Case<'_>) -> io::Result<()> {
        if let End::Differs(differences) = &case.end {
            for difference in differences {
                self.difference(case, difference);
            }
        }
        Ok(())
    }

    fn unreadable(&mut self, _: &str, message: &str) -> io::Result<()> {
        if self.unreadable.len() < ROWS {
            self.unreadable.push(format!("- {}", cell(message)));
        }
        Ok(())
    }

    fn finish(&mut self, totals: &Totals) -> io::Result<()> {
        let title = match totals.differing {
            0 if !self.unreadable.is_empty() => "recordings that can't be read".to_owned(),
            0 => "all calls hold".to_owned(),
            differing => format!("{differing} of {} calls differ", totals.calls),
        };
        let mut page = format!(
            "### toolq replay: {title}\n\n{}.\n",
            labels::summary(totals)
        );
        if !self.unreadable.is_empty() {
            let _ = write!(page, "\n{}\n", self.unreadable.join("\n"));
        }
        if !self.rows.is_empty() {
            page += "\n| file | turn | tool | what |\n| --- | --- | --- | --- |\n";
            let _ = writeln!(page, "{}", self.rows.join("\n"));
        }
        if self.more > 0 {
            let _ = write!(page, "\n… and {} more.\n", self.more);
        }
        for diff in &self.diffs {
            let _ = write!(page, "\n{diff}\n");
        }
        self.out.write_all(page.as_bytes())?;
        self.out.flush()
    }
}

/// A text in a cell: never markup of its own.
fn cell(text: &str) -> String {
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

/// A fence that no line of `text` ends.
fn fence(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    fence
}
