//! Prunes an old log: of its records, those stay that say whether a call was done, for as long as somebody may ask. What was said
//! in the calls and their results goes, with the files next to the log. A log without such calls is removed.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::iter;
use std::path::{Path, PathBuf};

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::error::{Corruption, LogError};
use crate::reader::RecordReader;
use crate::records::record::write_sealed_line;
use crate::records::{
    NewRecord, PRUNED_RESULT, Record, RecordKind, StartRecord, write_file_atomically,
};
use crate::sessions::{
    self, BlobDir, SessionFiles, is_default_log_name, list_matching_files, modified_ms,
};
use toolq_core::types::Effect;

const PRUNED_ERROR: &str = "This call failed. Its result is no longer on record.";
/// What stays of the metadata of a call's end.
const KEPT_END_FIELDS: [&str; 10] = [
    "tool_use_id",
    "tool_name",
    "is_error",
    "status",
    "duration_ms",
    "attempts",
    "exit",
    "http_status",
    "budget_of",
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
    /// A run is writing it, or has just begun it in place of an older one, or somebody has to see what it asks.
    InUse,
    /// Its blob directory contains files that toolq doesn't create.
    ForeignFiles,
}

impl PruneOptions {
    /// Prunes the session of `log` if these options select it. `torn_copies` are the files in its directory to which torn ends
    /// were copied. One of whose calls somebody `is_asked` about is kept: its records are known by their places.
    ///
    /// # Errors
    /// It can't be read or replaced, or it is damaged; a damaged log is kept.
    pub fn prune_session(
        &self,
        log: &Path,
        torn_copies: &[PathBuf],
        is_asked: bool,
    ) -> Result<PruneResult, LogError> {
        let io = |action| LogError::io(log, action);
        let file = sessions::open_owned(log)?;
        // Settles most cases without reading the log.
        let modified_ms = modified_ms(&file.metadata().map_err(io("read"))?);
        if modified_ms >= self.written_before_ms {
            return Ok(PruneResult::TooRecent);
        }
        if is_asked || !sessions::try_lock_current(&file, log)? {
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
        let is_as_long = files.bytes() == kept.len() as u64;
        if !kept.is_empty() && is_as_long && fs::read(log).map_err(io("read"))? == kept {
            return Ok(PruneResult::AlreadyPruned);
        }
        if !self.dry_run {
            if kept.is_empty() {
                files.remove(false).map_err(io("removed"))?;
            } else {
                write_file_atomically(log, &kept).map_err(io("replaced"))?;
                files.remove(true).map_err(io("removed"))?;
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
    /// The calls that the memory may be asked about, what agents did for them, and the turns and runs of both.
    ids: HashSet<Uuid>,
    /// The calls among them that agents work on. One that broke off is in doubt because of what it had started.
    agents: HashSet<Uuid>,
}

type Parents = HashMap<Uuid, Option<Uuid>>;

impl Needs {
    /// Reads a whole log: since clocks can go backwards, any record may have the latest timestamp.
    fn of(log: File) -> Result<Self, Corruption> {
        let mut needs = Self::default();
        let mut parents = Parents::new();
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
                    needs.add_start(record.parent, &start, &parents);
                }
                _ => {}
            }
        }
        Ok(needs)
    }

    fn add_start(&mut self, call: Option<Uuid>, start: &StartRecord<'_>, parents: &Parents) {
        let with_parents = || iter::successors(call, |id| parents.get(id).copied().flatten());
        let is_effect_of_agent = start.effect != Effect::Read
            && with_parents().any(|parent| self.agents.contains(&parent));
        if start.key.is_some() || is_effect_of_agent {
            self.ids.extend(with_parents());
            self.agents.extend(call.filter(|_| start.agent.is_some()));
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
            RecordKind::SessionEnd
            | RecordKind::ModelResponse
            | RecordKind::ToolStart
            | RecordKind::ToolResult
            | RecordKind::ToolSkipped
            | RecordKind::ToolInDoubt
            | RecordKind::Approval
            | RecordKind::Resolve => belongs,
            RecordKind::ProbeStart
            | RecordKind::ProbeEnd
            | RecordKind::DescribeStart
            | RecordKind::DescribeEnd
            | RecordKind::ListStart
            | RecordKind::ListEnd
            | RecordKind::ServerStart
            | RecordKind::ServerEnd
            | RecordKind::ToolsChange
            | RecordKind::Recovered
            | RecordKind::Other(_) => false,
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
            let (content, metadata) = left_of(&record)?;
            let left = NewRecord {
                seq,
                id: record.id,
                parent: record.parent,
                timestamp: record.timestamp,
                kind: record.kind,
                content,
                metadata,
            };
            write_sealed_line(&mut line, &left)?;
            lines.extend_from_slice(&line);
            seq += 1;
        }
        Ok(lines)
    }
}

/// Returns what is left of the content and the metadata of a record.
fn left_of(record: &Record<'_>) -> io::Result<(Value, Box<RawValue>)> {
    Ok(match record.kind {
        RecordKind::ToolCall => {
            let mut fields: Map<String, Value> = serde_json::from_str(record.raw_metadata.get())?;
            let name = fields.get("tool_name").cloned().unwrap_or_default();
            fields.remove("input_before_coercion");
            (json!({"name": name, "input": null}), to_raw_value(&fields)?)
        }
        RecordKind::ToolResult
        | RecordKind::ToolSkipped
        | RecordKind::ToolInDoubt
        | RecordKind::Resolve => {
            let mut fields: Map<String, Value> = serde_json::from_str(record.raw_metadata.get())?;
            let is = |name| fields.get(name) == Some(&Value::Bool(true));
            // A call that is in doubt, didn't run or wasn't done has no result.
            let has_result = record.kind == RecordKind::ToolResult || is("done");
            let result = if is("is_error") {
                PRUNED_ERROR
            } else {
                PRUNED_RESULT
            };
            if record.kind != RecordKind::Resolve {
                fields.retain(|name, _| KEPT_END_FIELDS.contains(&&**name));
            }
            (json!(has_result.then_some(result)), to_raw_value(&fields)?)
        }
        _ => (Value::Null, record.raw_metadata.clone().into_owned()),
    })
}

// Finds and removes blob directories whose session log was deleted by hand.

/// Returns the directories `LOG.d` in `sessions_dir` whose log has a default name and no longer exists.
///
/// # Errors
/// The directory can't be read.
pub fn list_stale_blob_dirs(sessions_dir: &Path) -> Result<Vec<PathBuf>, LogError> {
    let mut blob_dirs = list_matching_files(sessions_dir, |name| {
        name.strip_suffix(b".d").is_some_and(is_default_log_name)
    })?;
    blob_dirs
        .retain(|blob_dir| fs::symlink_metadata(blob_dir).is_ok_and(|metadata| metadata.is_dir()));
    blob_dirs.retain(|blob_dir| {
        let log = fs::symlink_metadata(blob_dir.with_extension(""));
        log.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    });
    Ok(blob_dirs)
}

impl PruneOptions {
    /// Removes a directory found by [`list_stale_blob_dirs`], unless it was written too recently or contains files that
    /// toolq doesn't create.
    ///
    /// # Errors
    /// It can't be read or removed.
    pub fn prune_stale_blob_dir(&self, blob_dir: &Path) -> Result<PruneResult, LogError> {
        let io = |action| LogError::io(blob_dir, action);
        let blobs = BlobDir::read(blob_dir).map_err(io("read"))?;
        if blobs.has_foreign_files {
            return Ok(PruneResult::ForeignFiles);
        }
        let dir_metadata = fs::symlink_metadata(blob_dir).map_err(io("read"))?;
        let last_written_ms = blobs.last_modified_ms().max(modified_ms(&dir_metadata));
        if last_written_ms >= self.written_before_ms {
            return Ok(PruneResult::TooRecent);
        }
        if !self.dry_run {
            blobs.remove().map_err(io("removed"))?;
        }
        Ok(PruneResult::Pruned {
            keeps_log: false,
            last_written_ms,
            bytes: blobs.bytes(),
        })
    }
}
