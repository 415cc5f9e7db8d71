//! Reports of a replay, for people and programs. Each report gets every call as it is compared. Reports that start with
//! the totals keep the rest in an unlinked file until the end, so that memory use doesn't grow with the recordings.

mod diff;
mod html;
mod json;
mod junit;
mod markdown;
mod terminal;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write};
use std::path::PathBuf;

use crate::input::create_temporary_file;
use crate::pages::ReplayState;
use crate::replay::case::{CaseDifference, DifferenceKind, ReplayCase, ReplayTotals};
use toolq_core::text::{escape, format_count};
use toolq_core::types::CallRef;

pub(crate) use html::HtmlReport;
pub(crate) use json::JsonReport;
pub(crate) use junit::JunitReport;
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

    /// Completes the report. Nothing is written to `out` before.
    ///
    /// # Errors
    /// The report can't be written.
    fn finish(&mut self, totals: &ReplayTotals, out: &mut dyn Write) -> io::Result<()>;
}

/// A report, and where it goes.
pub(crate) struct OpenReport {
    pub path: PathBuf,
    pub out: Box<dyn Write + Send>,
    pub report: Box<dyn ReplayReport>,
}

// One-line descriptions of findings.

/// Formats the totals: `1 file, 3 turns, 16 calls: 2 differ, 4 match, 10 served from the recording (not run)`. Each call is in one of
/// these numbers, so they add up.
pub fn totals_label(totals: &ReplayTotals) -> String {
    let count = |number: usize, one: &str| format_count(number as u64, one);
    let numbers = [
        (ReplayState::Differs, totals.differing),
        (ReplayState::Stale, totals.stale - totals.differing_stale),
        (ReplayState::Matches, totals.matched - totals.served),
        (ReplayState::Served, totals.served),
    ];
    let is_counted = |(state, number): &(ReplayState, usize)| {
        let says_none = *state == ReplayState::Differs && totals.has_comparison();
        *number > 0 || says_none
    };
    let counted = numbers.into_iter().filter(is_counted);
    let mut parts: Vec<String> = counted
        .map(|(state, number)| state.counted(number))
        .collect();
    let compared: usize = numbers.iter().map(|(_, number)| number).sum();
    let not_compared = totals.calls - compared - totals.abandoned;
    if not_compared > 0 {
        let why = if not_compared == totals.unrecorded {
            " (no recorded result)"
        } else {
            ""
        };
        parts.push(ReplayState::NotCompared.counted(not_compared) + why);
    }
    if totals.abandoned > 0 {
        parts.push(format!("{} abandoned", totals.abandoned));
    }
    if parts.is_empty() {
        parts.push("nothing was compared".to_owned());
    }
    if totals.updated > 0 {
        parts.push(format!("{} updated", totals.updated));
    }
    format!(
        "{}, {}, {}: {}",
        count(totals.files, "file"),
        count(totals.turns, "turn"),
        count(totals.calls, "call"),
        parts.join(", ")
    )
}

/// Says why a result is stale.
pub(crate) fn stale_label(after: &CallRef) -> String {
    let (name, id, turn) = (&after.tool_name, &after.tool_use_id, after.turn);
    format!(
        "stale: the result differs, but {name} ({id}) in turn {turn}, which may have changed it, did not run"
    )
}

/// Describes a difference in one line, without the values.
pub(crate) fn difference_label(difference: &CaseDifference) -> String {
    let text = |json: &Option<String>| {
        let json = json.as_deref().unwrap_or_default();
        let text: Result<String, _> = serde_json::from_str(json);
        text.unwrap_or_else(|_| json.to_owned())
    };
    let at = match difference.path.as_str() {
        "" => String::new(),
        path => format!(" at {}", escape(path)),
    };
    let expected = text(&difference.expected);
    match difference.kind {
        // What leads nowhere in the input may not be about it.
        DifferenceKind::Schema if at.is_empty() => {
            format!("the call is rejected: {}", escape(&expected))
        }
        DifferenceKind::Schema => {
            format!("the input is invalid{at}: {} (not run)", escape(&expected))
        }
        DifferenceKind::UnknownTool => escape(&expected).into_owned(),
        DifferenceKind::Result => format!("the result differs{at}"),
        DifferenceKind::Missing => {
            "the recording has no result, and the call was not run".to_owned()
        }
    }
}

// Text that is kept in a temporary file.

/// Text that is kept in an unlinked file until what precedes it is known.
#[derive(Default)]
pub(crate) struct TextSpool(Option<BufWriter<File>>);

impl TextSpool {
    /// Appends text.
    fn push(&mut self, text: &str) -> io::Result<()> {
        let file = match &mut self.0 {
            Some(file) => file,
            none => none.insert(BufWriter::new(create_temporary_file()?)),
        };
        file.write_all(text.as_bytes())
    }

    /// Writes everything to `out` and leaves the spool empty.
    fn drain_to(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let Some(mut file) = self.0.take() else {
            return Ok(());
        };
        file.seek(SeekFrom::Start(0))?;
        io::copy(file.get_mut(), out).map(drop)
    }

    /// Appends everything to another spool and leaves this one empty.
    fn drain_into(&mut self, other: &mut Self) -> io::Result<()> {
        // A spool has a file only after the first push.
        other.push("")?;
        match &mut other.0 {
            Some(file) => self.drain_to(file),
            None => Ok(()),
        }
    }

    /// Returns whether the spool is empty.
    fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}
