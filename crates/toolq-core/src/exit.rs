//! How the program ends: exit codes and their precedence, and the error that ends a command.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use crate::transcript::InputError;
use crate::types::{Outcome, Status};

/// How the program ends. Variants are ordered by precedence: if several apply, the greatest wins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Every call was answered.
    #[default]
    Ok,
    /// The model made no tool calls.
    NoCalls,
    /// `--fail-on-error` with an error result; `replay` found differences; `check` or `plan --strict` found problems.
    ProblemsFound,
    /// A call waits for an approval. Every call is still answered.
    NeedsApproval,
    /// A tool is paused, a budget is used up, a call is in doubt or in conflict with an earlier one, or a stream broke off. Every
    /// call is still answered.
    Incomplete,
    /// Usage, tools.yaml, or input is wrong; nothing ran.
    Usage,
    /// The session log can't be used.
    Log,
    /// The system has no threads or descriptors to start with; nothing ran.
    Resources,
    /// Terminated by this signal.
    Signal(u8),
    /// Results couldn't be written.
    Output,
}

impl Exit {
    /// Returns the exit that a call asks for which ended like this.
    pub fn of_outcome(outcome: &Outcome) -> Self {
        match outcome.status() {
            // The model learns what ran, and goes on from there.
            Status::Conflict if matches!(outcome, Outcome::Conflict(conflict) if conflict.is_once) => {
                Self::Ok
            }
            Status::NeedsApproval => Self::NeedsApproval,
            Status::Paused
            | Status::OverBudget
            | Status::InDoubt
            | Status::Conflict
            | Status::IsRunning => Self::Incomplete,
            Status::LogRefused => Self::Log,
            _ => Self::Ok,
        }
    }

    /// Returns the exit of a command that reports problems.
    pub fn problems_if(has_problems: bool) -> Self {
        if has_problems {
            Self::ProblemsFound
        } else {
            Self::Ok
        }
    }

    /// Returns the process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::ProblemsFound => 1,
            Self::Usage => 2,
            Self::Incomplete => 3,
            Self::Log => 4,
            Self::NoCalls => 5,
            Self::NeedsApproval => 6,
            Self::Signal(signal) => 128 + signal,
            Self::Resources => 71,
            Self::Output => 74,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

// The error that ends a command: what went wrong, where, why, and what to do.

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
            libc::EISDIR => Self::usage(message).with_hint("name a file in it"),
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

#[cfg(test)]
mod tests {
    use super::Exit;

    /// If several apply: 74, then 128 + signal, then 71, 4, 2, 3, 6, 1.
    #[test]
    fn the_most_severe_exit_wins() {
        let codes = |exits: &[Exit]| exits.iter().max().map(|exit| exit.code());
        assert_eq!(codes(&[Exit::Output, Exit::Signal(2), Exit::Log]), Some(74));
        assert_eq!(
            codes(&[Exit::Signal(15), Exit::Log, Exit::Usage]),
            Some(143)
        );
        assert_eq!(codes(&[Exit::Log, Exit::Resources]), Some(71));
        assert_eq!(codes(&[Exit::Signal(1), Exit::Resources]), Some(129));
        assert_eq!(codes(&[Exit::Incomplete, Exit::Usage, Exit::Log]), Some(4));
        assert_eq!(codes(&[Exit::NeedsApproval, Exit::Incomplete]), Some(3));
        assert_eq!(codes(&[Exit::ProblemsFound, Exit::NeedsApproval]), Some(6));
    }
}
