//! `toolq log verify`: whether every line of a log, and every file that it names, is as it was written.

use std::fs;
use std::path::Path;

use crate::args::LogFiles;
use crate::commands::log::{counted, files};
use crate::context::Context;
use crate::output::stdout;
use crate::output::{Exit, Failure};
use toolq_core::text::escape;
use toolq_log::{Kind, Order, Record, Records};

/// Prints a line for each log: what it has, or the first line that is wrong.
///
/// # Errors
/// There is no latest session, or stdout takes no more.
pub fn verify(arguments: &LogFiles, context: &Context) -> Result<Exit, Failure> {
    let mut exit = Exit::Ok;
    for path in files(arguments, context)? {
        let verdict = check(&path).unwrap_or_else(|wrong| {
            exit = Exit::Log;
            wrong
        });
        let path = path.display().to_string();
        stdout::line(&format!("{}: {}", escape(&path), escape(&verdict)))?;
    }
    Ok(exit)
}

/// What a log has.
#[derive(Default)]
struct Counts {
    records: u64,
    sessions: u64,
    calls: u64,
    files: u64,
    /// The last session has no end.
    is_open: bool,
}

/// What the log has, or what is wrong with it.
fn check(path: &Path) -> Result<String, String> {
    let mut counts = Counts::default();
    let mut order = Order::default();
    // Behind a link, files stand beside what it leads to.
    let log = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut records = Records::open(path).map_err(|error| error.to_string())?;
    while let Some(record) = records.lend() {
        let record = record.map_err(|damage| damage.to_string())?;
        order.take(&record).map_err(|damage| damage.to_string())?;
        counts.add(&record);
        let files = record.check_files(&log);
        counts.files += files.map_err(|error| format!("line {}: {error}", record.line))?;
    }
    if counts.records == 0 {
        return Err("the file is empty".to_owned());
    }
    Ok(counts.words(records.newer()))
}

impl Counts {
    fn add(&mut self, record: &Record) {
        self.records += 1;
        self.is_open = record.kind.leaves_open(self.is_open);
        match record.kind {
            Kind::Session => self.sessions += 1,
            Kind::ToolCall => self.calls += 1,
            _ => {}
        }
    }

    /// `ok: 9 records, 1 session, 2 calls`.
    fn words(&self, newer: Option<(u32, u32)>) -> String {
        let mut words = vec![
            counted(self.records, "record"),
            counted(self.sessions, "session"),
            counted(self.calls, "call"),
        ];
        if self.files > 0 {
            words.push(counted(self.files, "file"));
        }
        let open = if self.is_open {
            "; the last session has no end"
        } else {
            ""
        };
        let newer = newer.map_or_else(String::new, |(major, minor)| {
            format!("; in the newer format {major}.{minor}")
        });
        format!("ok: {}{open}{newer}", words.join(", "))
    }
}
