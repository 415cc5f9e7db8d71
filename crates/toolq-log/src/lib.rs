//! The session log: what was asked, started and answered, as JSON lines. Events come in, one record a line goes out.
//!
//! ```text
//! {"seq":7,"id":"…","parentId":"…","timestamp":1763755200000,"type":"tool_result","content":…,"metadata":{…},"prev":"…","crc":"…"}
//! ```
//!
//! A record is written by one write(2) and is at most 64 KiB long; what is larger stands in a file of the folder
//! `LOG.d`, written before the record that names it. A start is on record before anything starts, a result before
//! anybody reads it: the engine tells this sink first and heeds its refusal. After a failed write nothing more is
//! written. Secrets are masked in every text. Nothing here knows the screen.

mod error;
mod open;
mod prune;
mod read;
pub mod records;
mod resume;
mod stale_blobs;
#[cfg(test)]
mod tests;
mod write;

pub use error::{LogError, Wish};
pub use open::{
    Begin, OpenLog, default_path, digest_of, latest_of_input, latest_session, sessions,
    sessions_folder, torn_ends,
};
pub use prune::{Prune, Pruned};
pub use read::{Damage, Order, Records, witness};
pub use records::{
    Body, EndFields, Kind, Record, SessionStart, Start, Stored, TurnFields, is_cut_short,
    log_schema,
};
pub use resume::{Conflict, History, RecallError, Recollection, Resolution, ResolveError, resolve};
pub use stale_blobs::stale_blob_dirs;
pub use write::{Session, SessionLog, Sync};

/// Records of another major version can't be read, those of a newer minor one can't be continued.
const FORMAT: (u32, u32) = (1, 0);
/// Bytes of a record with the line break behind it. A write of this size is whole or not at all, also where the process
/// is killed in the middle.
const MAX_RECORD: usize = 64 << 10;
