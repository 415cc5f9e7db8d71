//! Finds, locks, verifies and recovers log files.

mod locked_log;
pub(crate) mod sessions;

pub use locked_log::LockedLog;
pub use sessions::{
    default_log_path, exceeds_size, find_latest_session, list_sessions, list_torn_copies,
    sessions_dir, state_dir,
};
pub(crate) use sessions::{is_default_log_name, list_matching_files};
