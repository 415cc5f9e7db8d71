//! The error that ends a command: what went wrong, where, why, and what to do.

use std::fmt::Display;
use std::io;

use crate::output::exit::Exit;
use toolq_core::text::quote_path_for_shell;
use toolq_core::transcript::InputError;
use toolq_log::{Access, CallConflict, LogError, RestoreError};

/// What to do if the system has no threads or descriptors left.
pub const RESOURCES_HINT: &str =
    "raise the limits of this user or container (`ulimit -u`, `ulimit -n`), or end other processes";

/// A message for people and the exit code that goes with it.
#[derive(Debug)]
pub struct CommandError {
    pub exit: Exit,
    /// One sentence without a final period; empty if everything was printed already.
    pub message: String,
    /// What the user can do about it.
    pub hint: Option<String>,
}

impl CommandError {
    /// Creates an error for wrong usage, a wrong file, or a wrong input: nothing ran.
    pub fn usage(message: impl Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Creates an error with any exit.
    pub fn new(exit: Exit, message: impl Display) -> Self {
        Self {
            exit,
            message: message.to_string(),
            hint: None,
        }
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Creates an error for a file or stream that can't be used, because of `error` or for a reason that `message` has. It is
    /// the system's fault and not the file's if no descriptor is left.
    pub fn unusable_file(message: impl Display, error: &io::Error) -> Self {
        let cause = error.get_ref().and_then(|inner| inner.source());
        let cause = cause.and_then(|cause| cause.downcast_ref::<io::Error>());
        match cause.unwrap_or(error).raw_os_error() {
            Some(number) => Self::of_system(message, number),
            None => Self::usage(message),
        }
    }

    fn of_system(message: impl Display, errno: i32) -> Self {
        match errno {
            libc::EMFILE | libc::ENFILE => {
                Self::new(Exit::Resources, message).with_hint(RESOURCES_HINT)
            }
            _ => Self::usage(message),
        }
    }

    /// Creates an error for a log that can't be used. The hint depends on `access`, what it was opened for.
    pub fn from_log_error(error: &LogError, access: Access) -> Self {
        Self::new(Exit::Log, error).with_hint(error.hint(access))
    }

    /// Creates an error whose reasons were printed already.
    pub fn silent(exit: Exit) -> Self {
        Self::new(exit, "")
    }
}

impl From<InputError> for CommandError {
    fn from(error: InputError) -> Self {
        let hint = error.hint.clone();
        let failure = match error.errno {
            Some(errno) => Self::of_system(error, errno),
            None => Self::usage(error),
        };
        Self {
            hint: failure.hint.or(hint),
            ..failure
        }
    }
}

/// For errors of a run's log.
impl From<LogError> for CommandError {
    fn from(error: LogError) -> Self {
        Self::from_log_error(&error, Access::Run)
    }
}

impl From<CallConflict> for CommandError {
    fn from(conflict: CallConflict) -> Self {
        Self::usage(conflict).with_hint(
            "resume with the input of that run, or start another run in this log with `--new`",
        )
    }
}

impl From<RestoreError> for CommandError {
    fn from(error: RestoreError) -> Self {
        let failure = Self::new(Exit::Log, &error);
        match error.log_path() {
            Some(path) => {
                let path = quote_path_for_shell(&path);
                let hint = format!("`toolq log verify {path}` says what is wrong with it");
                failure.with_hint(hint)
            }
            None => failure,
        }
    }
}

/// A closed pipe was the reader's choice, so it prints no message.
impl From<crate::output::stdout::StdoutError> for CommandError {
    fn from(lost: crate::output::stdout::StdoutError) -> Self {
        match lost {
            crate::output::stdout::StdoutError::Closed => Self::silent(Exit::Output),
            crate::output::stdout::StdoutError::Stalled => Self::new(
                Exit::Output,
                "stdout can't be written: its reader keeps it open, but doesn't read",
            ),
            crate::output::stdout::StdoutError::Failed(error) => {
                Self::new(Exit::Output, format!("stdout can't be written: {error}"))
            }
        }
    }
}
