//! The error that ends a command: what went wrong, where, why, and what to do.

use std::fmt::Display;
use std::io;

use crate::exit::Exit;
use crate::transcript::InputError;

/// What to do if the system has no threads or descriptors left.
const RESOURCES_HINT: &str =
    "raise the limits of this user or container (`ulimit -u`, `ulimit -n`), or end other processes";

/// A message for people and the exit code that goes with it.
#[derive(Debug)]
pub struct CommandError {
    /// The exit code.
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

    /// Creates an error for a system that has no threads or descriptors left: nothing ran.
    pub fn resources(message: impl Display) -> Self {
        Self::new(Exit::Resources, message).with_hint(RESOURCES_HINT)
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
            libc::EMFILE | libc::ENFILE => Self::resources(message),
            _ => Self::usage(message),
        }
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
