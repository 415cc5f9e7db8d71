//! Find, lock, verify and recover a log file.

mod begin;
pub(crate) mod lock;
mod log;
mod paths;
mod recover;
mod sessions;

pub use begin::{Begin, OpenLog};
pub(crate) use log::Log;
pub use paths::{default_path, sessions_folder};
pub(crate) use paths::{folder_of, is_default_name};
pub(crate) use recover::RecoveredFields;
pub(crate) use sessions::files;
pub use sessions::{digest_of, latest_of_input, latest_session, sessions, torn_ends};
