//! Finds, locks, verifies and recovers log files.

mod begin;
pub(crate) mod lock;
mod locked_log;
mod paths;
mod recover;
mod sessions;
mod unsettled_session;

pub use begin::{BeginMode, PreparedLog};
pub(crate) use locked_log::LockedLog;
pub use paths::blob_dir_for;
pub(crate) use paths::is_default_log_name;
pub use paths::{default_log_path, plan_log_path, sessions_dir};
pub(crate) use sessions::list_matching_files;
pub use sessions::{
    combine_digests, exceeds_size, find_latest_session, find_latest_session_for_input,
    list_sessions, list_torn_copies,
};
pub use unsettled_session::{UnsettledSession, find_unsettled_session};
