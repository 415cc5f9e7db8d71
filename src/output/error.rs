//! What ends a command before its work is done: what, where, why, and what to do.

use std::fmt::Display;

use crate::output::exit::Exit;
use toolq_core::transcript::InputError;
use toolq_log::{Conflict, LogError, RecallError, Wish};

/// A message for people and the exit code that goes with it.
#[derive(Debug)]
pub struct Failure {
    /// How the program ends.
    pub exit: Exit,
    /// One sentence without a full stop; empty where everything was said already.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Failure {
    /// Wrong usage, a wrong file, or a wrong input: nothing ran.
    pub fn usage(message: impl Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Any exit with its message.
    pub fn new(exit: Exit, message: impl Display) -> Self {
        Self {
            exit,
            message: message.to_string(),
            hint: None,
        }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// A log that can't be used for what it was wanted for.
    pub fn of_log(error: &LogError, wish: Wish) -> Self {
        Self::new(Exit::Log, error).with_hint(error.cure(wish))
    }

    /// An end whose reasons are on the screen already.
    pub fn said(exit: Exit) -> Self {
        Self::new(exit, "")
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        let hint = error.hint.clone();
        Self {
            hint,
            ..Self::usage(error)
        }
    }
}

/// A run wanted the log.
impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        Self::of_log(&error, Wish::Run)
    }
}

impl From<Conflict> for Failure {
    fn from(conflict: Conflict) -> Self {
        Self::usage(conflict).with_hint(
            "resume with the input of that run, or begin another run in this log with `--new`",
        )
    }
}

impl From<RecallError> for Failure {
    fn from(error: RecallError) -> Self {
        let failure = Self::new(Exit::Log, &error);
        match error.log() {
            Some(path) => {
                let path = path.display();
                let hint = format!("`toolq log verify {path}` says what is wrong with it");
                failure.with_hint(hint)
            }
            None => failure,
        }
    }
}

/// Stdout can't be written. A closed pipe is the reader's choice, so it ends quietly.
impl From<crate::output::stdout::OutputLost> for Failure {
    fn from(lost: crate::output::stdout::OutputLost) -> Self {
        match lost {
            crate::output::stdout::OutputLost::Closed => Self::said(Exit::Output),
            crate::output::stdout::OutputLost::Failed(error) => {
                Self::new(Exit::Output, format!("stdout can't be written: {error}"))
            }
        }
    }
}
