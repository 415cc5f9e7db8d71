//! The session log: an append-only JSON Lines file that records every requested, started and completed call. Events
//! come in; each one becomes a record on a line of its own.
//!
//! ```text
//! {"seq":7,"id":"…","parentId":"…","timestamp":1763755200000,"type":"tool_result","content":…,"metadata":{…},"crc":"…"}
//! ```
//!
//! A record is at most 64 KiB long and is never split over two calls of write(2). Larger content is stored in a file in
//! the directory `LOG.d`, which is written before the record that refers to it. A start is recorded before anything
//! starts, and a result before anyone reads it: the engine emits its events to this sink first and respects a refusal.
//! After a failed write, nothing more is written. Secrets are masked in every text. This crate doesn't use the
//! terminal.

mod call_log;
mod claims;
mod error;
mod identity;
mod locked_log;
pub mod memory;
mod prune;
mod reader;
pub mod records;
mod sessions;
#[cfg(test)]
mod tests;
mod verify;
mod write;

pub use call_log::{CallEvent, CallLog};
pub use error::{Access, Corruption, LogError};
pub use locked_log::{LockedLog, record_settlement, settle_call};
pub use prune::{PruneOptions, PruneResult, list_stale_blob_dirs};
pub use reader::RecordReader;
pub use records::{
    FormatVersion, Record, RecordContent, RecordKind, SessionRecord, StoredBlob, blob_dir_for,
    log_schema,
};
pub use sessions::{
    default_log_path, exceeds_size, find_latest_session, list_sessions, list_torn_copies,
    session_bytes, sessions_dir, state_dir,
};
pub use verify::{SequenceChecker, verify_log};
pub use write::{LogReplica, SessionLog};

/// Major and minor version. A log of another major version can't be read; one of a newer minor version can be read, but
/// not continued.
const FORMAT_VERSION: (u32, u32) = (1, 0);
/// Maximum size of a record in bytes, including its line break. A write of this size is all or nothing, even if the
/// process is killed in the middle of it.
const MAX_RECORD_BYTES: usize = 64 << 10;
