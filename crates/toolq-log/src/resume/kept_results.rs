//! Results in a log that may answer calls of later runs, as long as no call after them may have changed what they say.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use uuid::Uuid;

use crate::call_event::CallEvent;
use crate::read::{Corruption, LineExtent, RecordReader};
use crate::records::{CallEndRecord, LocksRecord, Record, RecordKind};
use crate::resume::kept_lines::{KeptLine, KeptLines};
use toolq_core::schedule::CallAccess;
use toolq_core::types::{CallLocks, Effect, ResultContent};

/// The results of a log, which are read when they are needed.
#[derive(Debug, Default)]
pub struct KeptResults {
    lines: KeptLines,
    /// What calls may be changing that have started and not ended, by their `tool_call`.
    open_changes: HashMap<Uuid, CallAccess>,
    /// The path and the file from which results are read.
    source: Option<(PathBuf, File)>,
}

/// What is known of a result.
#[derive(Debug, Clone)]
pub struct KeptResultEntry {
    /// Identifies the call.
    pub digest: String,
    /// The id of the call.
    pub tool_use_id: String,
    /// When the call ended.
    pub taken: SystemTime,
    /// What the call read. `None` if that isn't known.
    pub locks: Option<CallLocks>,
}

impl KeptResults {
    /// Applies the next record. `end` is the byte offset of its end in the file.
    ///
    /// # Errors
    /// Its metadata doesn't fit its type.
    pub(crate) fn apply_record(&mut self, record: &Record, end: u64) -> Result<(), Corruption> {
        if record.kind == RecordKind::Session {
            // The run was killed while these calls ran. They ended with it, but what else they changed is unknown.
            if !self.open_changes.is_empty() {
                self.lines.clear();
                self.open_changes.clear();
            }
            return Ok(());
        }
        let (Some(call), Some(event)) = (record.parent, CallEvent::from_record(record)?) else {
            return Ok(());
        };
        match event {
            CallEvent::Started(start) if start.effect != Effect::Read => {
                let change = access_of(start.locks.as_ref());
                self.lines.remove_changed(&change);
                self.open_changes.insert(call, change);
            }
            CallEvent::Result(ended) => {
                self.end_change(call, ended.changed_more);
                self.keep(record, &ended, end);
            }
            CallEvent::Skipped(ended) | CallEvent::InDoubt(ended) => {
                self.end_change(call, ended.changed_more);
            }
            CallEvent::Started(_)
            | CallEvent::Approved(_)
            | CallEvent::Probed(_)
            | CallEvent::Resolved(_) => {}
        }
        Ok(())
    }

    fn end_change(&mut self, call: Uuid, changed_more: bool) {
        if let Some(change) = self.open_changes.remove(&call) {
            self.lines.remove_changed(&change);
        }
        if changed_more {
            self.lines.clear();
        }
    }

    fn keep(&mut self, record: &Record, ended: &CallEndRecord<'_>, end: u64) {
        let Some(kept) = &ended.kept else {
            return;
        };
        let line = KeptLine {
            extent: LineExtent::from_record(record, end),
            digest: Arc::from(&*kept.digest),
            tool_use_id: ended.tool_use_id.to_string(),
            timestamp_ms: record.timestamp,
            locks: kept.locks.as_ref().map(|locks| locks.to_locks().into()),
        };
        let access = line.access();
        let mut open = self.open_changes.values();
        if open.any(|change| change.may_change(&access)) {
            return;
        }
        self.lines.insert(line);
    }

    /// Makes results available, which are read from `file`, the log at `path`.
    pub(crate) fn set_source(&mut self, path: PathBuf, file: File) {
        self.source = Some((path, file));
    }

    /// Returns what is known of the results, the oldest first.
    pub fn list(&self) -> Vec<KeptResultEntry> {
        if !self.open_changes.is_empty() {
            // The last run was killed, and what it was doing may have changed anything.
            return Vec::new();
        }
        let entries = self.lines.iter().map(|line| KeptResultEntry {
            digest: line.digest.to_string(),
            tool_use_id: line.tool_use_id.clone(),
            taken: SystemTime::UNIX_EPOCH + Duration::from_millis(line.timestamp_ms),
            locks: line.locks.clone(),
        });
        entries.collect()
    }

    /// Reads the result with this digest. `None` if it can't be read any more.
    pub fn load(&self, digest: &str) -> Option<ResultContent> {
        let line = self.lines.get(digest)?;
        let (path, file) = self.source.as_ref()?;
        let record = RecordReader::read_again(file, line.extent).ok()?;
        let json = record.content.load(path).ok()?;
        let text = serde_json::from_str(json.get()).map(ResultContent::Text);
        text.or_else(|_| serde_json::from_str(json.get()).map(ResultContent::Blocks))
            .ok()
    }
}

/// Returns what a call that isn't `read` may change.
fn access_of(locks: Option<&LocksRecord<'_>>) -> CallAccess {
    let locks = locks.map(|locks| Arc::from(locks.to_locks()));
    CallAccess { safe: false, locks }
}
