//! Prunes an old log: of its records, those stay that say whether a call was done, for as long as somebody may ask. What was said
//! in the calls and their results goes, with the files next to the log. A log without such calls is removed.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::error::LogError;
use crate::open::lock;
use crate::read::{Corruption, RecordReader};
use crate::records::line::write_sealed_line;
use crate::records::{Record, RecordHeader, RecordKind, StartRecord};
use crate::session_files::{SessionFiles, modified_ms};
use crate::write::write_file_atomically;

/// What a model reads as the result of a call whose result was pruned.
const PRUNED_RESULT: &str = "This call was done. Its result is no longer on record.";
/// What stays of the metadata of a call's end.
const KEPT_END_FIELDS: [&str; 9] = [
    "tool_use_id",
    "tool_name",
    "is_error",
    "status",
    "duration_ms",
    "attempts",
    "exit",
    "http_status",
    "reach",
];

/// Which sessions are pruned.
#[derive(Debug, Clone, Copy)]
pub struct PruneOptions {
    /// Only sessions that were last written before this time are pruned: milliseconds since 1970.
    pub written_before_ms: u64,
    /// Only report what would be done.
    pub dry_run: bool,
}

/// What happened to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneResult {
    /// It was pruned.
    Pruned {
        /// When it was last written: milliseconds since 1970.
        last_written_ms: u64,
        /// How many bytes less it has, with the files next to it.
        bytes: u64,
        /// Its log stays, with what is left.
        keeps_log: bool,
    },
    /// It was pruned before: everything that is left is needed.
    AlreadyPruned,
    /// It was written too recently.
    TooRecent,
    /// A run is writing it, or has just begun it in place of an older one.
    InUse,
    /// Its blob directory contains files that toolq doesn't create.
    ForeignFiles,
}

impl PruneOptions {
    /// Prunes the session of `log` if these options select it. `torn_copies` are the files in its directory to which torn ends
    /// were copied.
    ///
    /// # Errors
    /// It can't be read or replaced, or it is damaged; a damaged log is kept.
    pub fn prune_session(
        &self,
        log: &Path,
        torn_copies: &[PathBuf],
    ) -> Result<PruneResult, LogError> {
        let io = |action| {
            move |source| LogError::Io {
                path: log.to_owned(),
                action,
                source,
            }
        };
        let file = lock::open_owned(log)?;
        // Settles most cases without reading the log.
        let modified_ms = modified_ms(&file.metadata().map_err(io("read"))?);
        if modified_ms >= self.written_before_ms {
            return Ok(PruneResult::TooRecent);
        }
        if !lock::try_lock_current(&file, log)? {
            return Ok(PruneResult::InUse);
        }
        let corrupt = |corruption| LogError::from_corruption(log, corruption);
        let needs = Needs::of(file.try_clone().map_err(io("read"))?).map_err(corrupt)?;
        let last_written_ms = needs.latest_timestamp.max(modified_ms);
        if last_written_ms >= self.written_before_ms {
            return Ok(PruneResult::TooRecent);
        }
        let files = SessionFiles::find(log, torn_copies).map_err(io("read"))?;
        if files.has_foreign_files() {
            return Ok(PruneResult::ForeignFiles);
        }
        let kept = needs
            .rewrite(file.try_clone().map_err(io("read"))?)
            .map_err(io("read"))?;
        let bytes = files.bytes().saturating_sub(kept.len() as u64);
        if !kept.is_empty() && bytes == 0 {
            return Ok(PruneResult::AlreadyPruned);
        }
        if !self.dry_run {
            if kept.is_empty() {
                files.remove().map_err(io("removed"))?;
            } else {
                write_file_atomically(log, &kept).map_err(io("replaced"))?;
                files.remove_beside_log().map_err(io("removed"))?;
            }
        }
        // The lock is held until here.
        drop(file);
        Ok(PruneResult::Pruned {
            last_written_ms,
            bytes,
            keeps_log: !kept.is_empty(),
        })
    }
}

/// The records that are needed.
#[derive(Default)]
struct Needs {
    latest_timestamp: u64,
    /// The calls that the memory may be asked about, their turns, and the agents that requested them.
    ids: HashSet<Uuid>,
    /// The runs that made them.
    sessions: HashSet<Uuid>,
}

impl Needs {
    /// Reads a whole log: since clocks can go backwards, any record may have the latest timestamp.
    fn of(log: File) -> Result<Self, Corruption> {
        let mut needs = Self::default();
        let mut parents: HashMap<Uuid, Option<Uuid>> = HashMap::new();
        for record in RecordReader::from_file(log) {
            let record = match record {
                Err(corruption) if corruption.is_torn_end() => break,
                record => record?,
            };
            needs.latest_timestamp = needs.latest_timestamp.max(record.timestamp);
            match record.kind {
                RecordKind::Session | RecordKind::Turn | RecordKind::ToolCall => {
                    parents.insert(record.id, record.parent);
                }
                RecordKind::ToolStart => {
                    let start: StartRecord<'_> = record.parse_metadata()?;
                    if start.key.is_some() {
                        needs.add_with_parents(record.parent, &parents);
                    }
                }
                _ => {}
            }
        }
        Ok(needs)
    }

    fn add_with_parents(&mut self, call: Option<Uuid>, parents: &HashMap<Uuid, Option<Uuid>>) {
        let mut next = call;
        while let Some(id) = next {
            let parent = parents.get(&id).copied().flatten();
            if parent.is_none() {
                self.sessions.insert(id);
            }
            self.ids.insert(id);
            next = parent;
        }
    }

    fn needs(&self, record: &Record<'_>) -> bool {
        let belongs = record
            .parent
            .is_some_and(|parent| self.ids.contains(&parent));
        match record.kind {
            RecordKind::Session | RecordKind::Turn | RecordKind::ToolCall => {
                self.ids.contains(&record.id)
            }
            RecordKind::SessionEnd => record
                .parent
                .is_some_and(|parent| self.sessions.contains(&parent)),
            RecordKind::ToolStart
            | RecordKind::ToolResult
            | RecordKind::ToolSkipped
            | RecordKind::ToolInDoubt
            | RecordKind::Approval
            | RecordKind::Resolve => belongs,
            _ => false,
        }
    }

    /// Returns the lines of the log that are left.
    fn rewrite(&self, log: File) -> io::Result<Vec<u8>> {
        let (mut lines, mut line, mut seq) = (Vec::new(), Vec::new(), 0);
        for record in RecordReader::from_file(log) {
            let Ok(record) = record else { break };
            if !self.needs(&record) {
                continue;
            }
            let header = RecordHeader {
                seq,
                id: record.id,
                parent: record.parent,
                timestamp: record.timestamp,
                kind: &record.kind,
            };
            let (content, metadata) = left_of(&record)?;
            write_sealed_line(&mut line, &header, &content, &metadata)?;
            lines.extend_from_slice(&line);
            seq += 1;
        }
        Ok(lines)
    }
}

/// Returns what is left of the content and the metadata of a record.
fn left_of(record: &Record<'_>) -> io::Result<(Value, Box<RawValue>)> {
    let metadata = || record.raw_metadata.clone().into_owned();
    Ok(match record.kind {
        RecordKind::ToolCall => {
            let mut fields: Map<String, Value> = serde_json::from_str(record.raw_metadata.get())?;
            let name = fields.get("tool_name").cloned().unwrap_or_default();
            fields.remove("input_before_coercion");
            (json!({"name": name, "input": null}), to_raw_value(&fields)?)
        }
        RecordKind::ToolResult | RecordKind::ToolSkipped | RecordKind::ToolInDoubt => {
            let mut fields: Map<String, Value> = serde_json::from_str(record.raw_metadata.get())?;
            fields.retain(|name, _| KEPT_END_FIELDS.contains(&&**name));
            (json!(PRUNED_RESULT), to_raw_value(&fields)?)
        }
        RecordKind::Resolve => (json!(PRUNED_RESULT), metadata()),
        _ => (Value::Null, metadata()),
    })
}
