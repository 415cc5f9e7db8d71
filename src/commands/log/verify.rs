//! `toolq log verify`: checks that every line of a log, and every file that it refers to, is intact.

use std::fs;
use std::path::Path;

use crate::commands::log::LogFileArguments;
use crate::commands::log::log_files::{open_log, select_logs};
use crate::context::CommandContext;
use crate::output::{CommandError, Exit, stdout};
use toolq_core::text::{escape, format_count};
use toolq_log::{FormatVersion, Record, RecordKind, SequenceChecker};

/// Prints a line per log: its counts, or its first problem.
///
/// # Errors
/// There is no latest session, or stdout can't be written.
pub fn verify_logs(
    arguments: &LogFileArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let mut exit = Exit::Ok;
    for path in select_logs(arguments, context)? {
        let verdict = verify_log(&path).unwrap_or_else(|problem| {
            exit = Exit::Log;
            problem
        });
        let path = path.display().to_string();
        stdout::write_line(&format!("{}: {}", escape(&path), escape(&verdict)))?;
    }
    Ok(exit)
}

/// The contents of a log in numbers.
#[derive(Default)]
struct LogCounts {
    records: u64,
    sessions: u64,
    calls: u64,
    files: u64,
    /// The last session has no end.
    is_open: bool,
}

/// Returns a summary of the log, or its first problem.
fn verify_log(path: &Path) -> Result<String, String> {
    let mut counts = LogCounts::default();
    let mut sequence_checker = SequenceChecker::default();
    // If the path is a symlink, the files are next to its target.
    let log = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut records = open_log(path).map_err(|failure| failure.message)?;
    while let Some(record) = records.next_borrowed() {
        let record = record.map_err(|damage| damage.to_string())?;
        sequence_checker
            .check_record(&record)
            .map_err(|damage| damage.to_string())?;
        counts.add(&record);
        let files = record.check_referenced_files(&log);
        counts.files += files.map_err(|error| format!("line {}: {error}", record.line))?;
    }
    if counts.records == 0 {
        return Err("the file is empty".to_owned());
    }
    Ok(counts.summarize(records.newer_format()))
}

impl LogCounts {
    fn add(&mut self, record: &Record) {
        self.records += 1;
        self.is_open = record.kind.leaves_run_open(self.is_open);
        match record.kind {
            RecordKind::Session => self.sessions += 1,
            RecordKind::ToolCall => self.calls += 1,
            _ => {}
        }
    }

    /// Formats the counts: `ok: 9 records, 1 session, 2 calls`.
    fn summarize(&self, newer: Option<FormatVersion>) -> String {
        let mut parts = vec![
            format_count(self.records, "record"),
            format_count(self.sessions, "session"),
            format_count(self.calls, "call"),
        ];
        if self.files > 0 {
            parts.push(format_count(self.files, "file"));
        }
        let open = if self.is_open {
            "; the last session has no end"
        } else {
            ""
        };
        let newer = newer.map_or_else(String::new, |FormatVersion { major, minor }| {
            format!("; in the newer format {major}.{minor}")
        });
        format!("ok: {}{open}{newer}", parts.join(", "))
    }
}
