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

mod bodies;
mod body;
mod claim;
mod damage;
mod decide;
mod describing;
mod doubts;
mod error;
mod fields;
mod file;
mod history;
mod journal;
mod kind;
mod line;
pub mod metadata;
mod named;
mod news;
mod open;
mod opening;
mod order;
mod place;
mod prune;
mod records;
mod remains;
mod recovery;
mod resolve;
mod schema;
mod session;
mod sessions;
mod storage;
mod witness;
mod written;

pub use body::{Body, BodyError, Stored};
pub use damage::{Damage, Flaw};
pub use error::{LogError, Wish};
pub use history::{Conflict, History, RecallError, Recollection};
pub use kind::Kind;
pub use open::{Begin, OpenLog};
pub use opening::Log;
pub use order::Order;
pub use place::{default_path, sessions_folder};
pub use prune::{Prune, Pruned};
pub use records::Records;
pub use remains::stale_blob_dirs;
pub use resolve::{Resolution, ResolveError, Resolved, resolve};
pub use schema::log_schema;
pub use session::{Session, SessionLog, Sync};
pub use sessions::{digest_of, latest_of_input, latest_session, sessions, torn_ends};
pub use witness::witness;
pub use written::Record;

/// Records of another major version can't be read, those of a newer minor one can't be continued.
const FORMAT: (u32, u32) = (1, 0);
/// Bytes of a record with the line break behind it. A write of this size is whole or not at all, also where the process
/// is killed in the middle.
const MAX_RECORD: usize = 64 << 10;

#[cfg(test)]
mod tests;
