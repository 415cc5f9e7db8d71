//! What a replay found, for people and programs: each report hears of every call as it is compared, and writes when all
//! are. None of them holds more in memory than a few lines: what waits for its totals waits in an unlinked file.

mod diff;
mod json;
mod junit;
mod labels;
mod markdown;
mod screen;
mod spool;
#[cfg(test)]
mod tests;

pub(crate) use json::JsonReport;
pub(crate) use junit::JunitReport;
pub(crate) use labels::summary;
pub(crate) use markdown::MarkdownReport;
pub(crate) use screen::Screen;

use std::io;

use crate::replay::case::{Case, Totals};

/// Somebody who is told what was found.
pub trait Report {
    /// The next call, in the order of files, turns and positions.
    ///
    /// # Errors
    /// There is no room, or nobody takes it.
    fn case(&mut self, case: &Case<'_>) -> io::Result<()>;

    /// A recording that can't be read, or not to its end.
    ///
    /// # Errors
    /// As of a call.
    fn unreadable(&mut self, file: &str, message: &str) -> io::Result<()>;

    /// All was told.
    ///
    /// # Errors
    /// As of a call.
    fn finish(&mut self, totals: &Totals) -> io::Result<()>;
}

/// Several reports as one.
impl Report for Vec<Box<dyn Report>> {
    fn case(&mut self, case: &Case<'_>) -> io::Result<()> {
        self.iter_mut().try_for_each(|report| report.case(case))
    }

    fn unreadable(&mut self, file: &str, message: &str) -> io::Result<()> {
        let mut reports = self.iter_mut();
        reports.try_for_each(|report| report.unreadable(file, message))
    }

    fn finish(&mut self, totals: &Totals) -> io::Result<()> {
        self.iter_mut().try_for_each(|report| report.finish(totals))
    }
}
