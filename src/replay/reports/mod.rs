//! Reports of a replay, for people and programs. Each report gets every call as it is compared. Reports that start with
//! the totals keep the rest in an unlinked file until the end, so that memory use doesn't grow with the recordings.

mod diff;
mod html;
mod json;
mod junit;
mod labels;
mod markdown;
mod terminal;
#[cfg(test)]
mod tests;

use std::io;

use crate::replay::case::{ReplayCase, ReplayTotals};

pub(crate) use html::HtmlReport;
pub(crate) use json::JsonReport;
pub(crate) use junit::JunitReport;
pub(crate) use labels::totals_label;
pub(crate) use markdown::MarkdownReport;
pub(crate) use terminal::TerminalReport;

/// A report of a replay.
pub trait ReplayReport: Send {
    /// Adds the next call, in the order of files, turns, and positions.
    ///
    /// # Errors
    /// The report can't be written.
    fn add_case(&mut self, case: &ReplayCase<'_>) -> io::Result<()>;

    /// Adds a recording that can't be read to its end, unless the report leaves that to the error that the command prints.
    ///
    /// # Errors
    /// The report can't be written.
    fn add_unreadable(&mut self, _file: &str, _message: &str) -> io::Result<()> {
        Ok(())
    }

    /// Completes the report.
    ///
    /// # Errors
    /// The report can't be written.
    fn finish(&mut self, totals: &ReplayTotals) -> io::Result<()>;
}

/// Passes everything to several reports.
impl ReplayReport for Vec<Box<dyn ReplayReport>> {
    fn add_case(&mut self, case: &ReplayCase<'_>) -> io::Result<()> {
        self.iter_mut().try_for_each(|report| report.add_case(case))
    }

    fn add_unreadable(&mut self, file: &str, message: &str) -> io::Result<()> {
        let mut reports = self.iter_mut();
        reports.try_for_each(|report| report.add_unreadable(file, message))
    }

    fn finish(&mut self, totals: &ReplayTotals) -> io::Result<()> {
        self.iter_mut().try_for_each(|report| report.finish(totals))
    }
}
