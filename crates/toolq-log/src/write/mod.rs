//! Appends records to a log, and makes them durable when a promise depends on it.

mod attempts;
mod blob_store;
mod call_memory;
mod calls;
mod describe;
mod events;
pub(crate) mod journal;
mod keeper;
mod log_file;
mod replicated_file;
mod servers;
mod session_log;
pub(crate) mod storage;
mod tools;
mod turns;

pub(crate) use blob_store::write_file_atomically;
pub(crate) use journal::Journal;
pub(crate) use log_file::unreliable_file_system;
pub use replicated_file::LogReplica;
pub(crate) use replicated_file::ReplicatedFile;
pub use session_log::SessionLog;
pub(crate) use storage::{DiskFile, Storage, is_file_at};
