//! Appends records to a log, and makes them durable when a promise depends on it.

mod call_memory;
mod events;
pub(crate) mod journal;
pub(crate) mod log_file;
mod session_log;

pub(crate) use journal::Journal;
pub use log_file::LogReplica;
pub(crate) use log_file::{DiskFile, unreliable_file_system};
pub use session_log::SessionLog;
