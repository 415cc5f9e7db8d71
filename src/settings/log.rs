//! Which session log a session writes, and which of its calls run again.

use std::path::{Path, PathBuf};

use crate::args::shared_flags::LogFlags;
use toolq_core::os::Environment;
use toolq_log::LogError;
use toolq_log::memory::{RememberedIn, RunAgain};

/// The session log.
#[derive(Debug, Clone)]
pub struct LogSettings {
    pub target: LogTarget,
    /// Which calls run again although they have run before.
    pub again: RunAgain,
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
    pub(crate) fn new(flag: Option<PathBuf>, environment: &Environment) -> Self {
        let from_environment = || environment.get_os("TOOLQ_LOG_FILE").map(PathBuf::from);
        let named = flag.or_else(from_environment);
        match named.filter(|path| !path.as_os_str().is_empty()) {
            Some(file) => Self::File(file),
            None => Self::DefaultDirectory,
        }
    }

    /// Returns the memory that a run with this log belongs to. `None` if it has none.
    ///
    /// # Errors
    /// There is no folder for what toolq remembers.
    pub(crate) fn memory(
        &self,
        environment: &Environment,
    ) -> Result<Option<RememberedIn>, LogError> {
        let state_dir = toolq_log::state_dir(environment);
        Ok(match self {
            Self::Disabled => None,
            Self::File(path) => Some(RememberedIn::of_log(path, state_dir.ok().as_deref())),
            Self::DefaultDirectory => Some(RememberedIn::state(&state_dir?)),
        })
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
    pub(crate) fn new(flags: &LogFlags, environment: &Environment) -> Self {
        let target = if flags.no_log {
            LogTarget::Disabled
        } else {
            LogTarget::new(flags.file.clone(), environment)
        };
        let again = match &flags.new {
            None => RunAgain::None,
            Some(ids) if ids.is_empty() => RunAgain::All,
            Some(ids) => RunAgain::Ids(ids.iter().cloned().collect()),
        };
        Self { target, again }
    }
}

impl From<LogTarget> for LogSettings {
    /// Nothing runs again.
    fn from(target: LogTarget) -> Self {
        Self {
            target,
            again: RunAgain::None,
        }
    }
}
