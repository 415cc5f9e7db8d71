//! Removes a session that is no longer needed: the log and the files next to it. The log is locked meanwhile, so that
//! no run can resume it.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::error::LogError;
use crate::open::lock;
use crate::read::RecordReader;
use crate::resume::InDoubtCalls;
use crate::session_files::{SessionFiles, modified_ms};

/// Which sessions are removed.
#[derive(Debug, Clone, Copy)]
pub struct PruneOptions {
    /// Only sessions that were last written before this time are removed: milliseconds since 1970.
    pub written_before_ms: u64,
    /// Also remove sessions that have no end or calls in doubt.
    pub include_unfinished: bool,
    /// Only report what would be removed.
    pub dry_run: bool,
}

/// What happened to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneResult {
    /// It was removed.
    Removed {
        /// When it was last written: milliseconds since 1970.
        last_written_ms: u64,
        /// Size of the log and the files next to it, in bytes.
        bytes: u64,
    },
    /// It was written too recently.
    TooRecent,
    /// It has no end, so its run can still be resumed.
    Unfinished,
    /// One of its calls is in doubt, and no other file records that.
    InDoubt,
    /// A run is writing it, or has just begun it in place of an older one.
    InUse,
    /// Its blob directory contains files that toolq doesn't create.
    ForeignFiles,
}

impl PruneOptions {
    /// Removes the session of `log` if these options select it. `torn_copies` are the files in its directory to which
    /// torn ends were copied.
    ///
    /// # Errors
    /// It can't be read or removed, or it is damaged; a damaged log is kept.
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
        let lock = file.try_clone().map_err(io("read"))?;
        let summary = LogSummary::read(log, file)?;
        let last_written_ms = summary.latest_timestamp.max(modified_ms);
        if last_written_ms >= self.written_before_ms {
            return Ok(PruneResult::TooRecent);
        }
        match &summary {
            _ if self.include_unfinished => {}
            summary if summary.is_unfinished => return Ok(PruneResult::Unfinished),
            summary if summary.in_doubt_calls.has_any() => return Ok(PruneResult::InDoubt),
            _ => {}
        }
        let files = SessionFiles::find(log, torn_copies).map_err(io("read"))?;
        if files.has_foreign_files() {
            return Ok(PruneResult::ForeignFiles);
        }
        if !self.dry_run {
            files.remove().map_err(io("removed"))?;
        }
        drop(lock);
        Ok(PruneResult::Removed {
            last_written_ms,
            bytes: files.bytes(),
        })
    }
}

/// What pruning needs to know of a log.
struct LogSummary {
    latest_timestamp: u64,
    is_unfinished: bool,
    in_doubt_calls: InDoubtCalls,
}

impl LogSummary {
    /// Reads a whole log: since clocks can go backwards, any record may have the latest timestamp. A log with a torn
    /// end counts as unfinished.
    fn read(path: &Path, log: File) -> Result<Self, LogError> {
        let mut summary = Self {
            latest_timestamp: 0,
            is_unfinished: true,
            in_doubt_calls: InDoubtCalls::default(),
        };
        for record in RecordReader::from_file(log) {
            match record {
                Ok(record) => {
                    summary.latest_timestamp = summary.latest_timestamp.max(record.timestamp);
                    summary.is_unfinished = record.kind.leaves_run_open(summary.is_unfinished);
                    let applied = summary.in_doubt_calls.apply_record(&record);
                    applied.map_err(|corruption| LogError::from_corruption(path, corruption))?;
                }
                Err(corruption) if corruption.is_torn_end() => summary.is_unfinished = true,
                Err(corruption) => return Err(LogError::from_corruption(path, corruption)),
            }
        }
        Ok(summary)
    }
}
