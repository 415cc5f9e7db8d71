//! Finds, locks, verifies and recovers log files.

pub(crate) mod lock;
mod locked_log;
mod paths;
mod recover;
mod sessions;

pub use locked_log::LockedLog;
pub(crate) use paths::is_default_log_name;
pub use paths::{blob_dir_for, default_log_path, sessions_dir, state_dir};
pub(crate) use sessions::list_matching_files;
pub use sessions::{exceeds_size, find_latest_session, list_sessions, list_torn_copies};
