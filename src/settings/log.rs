//! Which session log a session writes, and how.

use std::path::{Path, PathBuf};

use crate::args::{LogFlags, NewSessionLogFlags};
use toolq_core::os::Environment;
use toolq_log::{BeginMode, SyncPolicy};

/// The session log.
#[derive(Debug, Clone)]
pub struct LogSettings {
    pub target: LogTarget,
    pub mode: BeginMode,
    /// What is missing runs even if the tools have changed since.
    pub accept_changes: bool,
    pub sync: SyncPolicy,
}

/// Where the session log is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTarget {
    /// No log is written.
    Disabled,
    /// A file in the default directory, which toolq names.
    DefaultDirectory,
    File(PathBuf),
}

impl LogTarget {
    /// `TOOLQ_LOG_FILE` names the log if the flag doesn't. As usual for paths, an empty variable is unset.
    fn new(flag: Option<PathBuf>, environment: &Environment) -> Self {
        let from_environment = || environment.get_os("TOOLQ_LOG_FILE").map(PathBuf::from);
        let named = flag.or_else(from_environment);
        match named.filter(|path| !path.as_os_str().is_empty()) {
            Some(file) => Self::File(file),
            None => Self::DefaultDirectory,
        }
    }

    /// Returns the path of the log, if the user named it.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Disabled | Self::DefaultDirectory => None,
        }
    }
}

impl LogSettings {
    pub(super) fn new(flags: &LogFlags, environment: &Environment) -> Self {
        let target = if flags.no_log {
            LogTarget::Disabled
        } else {
            LogTarget::new(flags.file.clone(), environment)
        };
        let mode = match (flags.resume, flags.new) {
            (true, _) => BeginMode::Resume,
            (_, true) => BeginMode::ForceNewTask,
            _ => BeginMode::NewTask,
        };
        Self {
            target,
            mode,
            accept_changes: flags.accept_changes,
            sync: flags.sync.into(),
        }
    }

    pub(super) fn of_new_session(flags: &NewSessionLogFlags, environment: &Environment) -> Self {
        Self {
            target: LogTarget::new(flags.file.clone(), environment),
            mode: BeginMode::ForceNewTask,
            accept_changes: false,
            sync: flags.sync.into(),
        }
    }
}
