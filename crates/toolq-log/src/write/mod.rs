//! Append records, and make them durable when a promise depends on them.

mod blob_store;
mod describe;
mod events;
mod file;
pub(crate) mod journal;
mod session_log;
pub(crate) mod storage;

pub(crate) use blob_store::publish;
pub(crate) use file::{LogFile, doubtful};
pub(crate) use journal::{Durable, Journal};
pub use session_log::{Session, SessionLog, Sync};
pub(crate) use storage::{Disk, is_at, sync_folder};
