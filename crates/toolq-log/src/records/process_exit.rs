//! What a program or a request ended with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use toolq_core::types::{CallEnding, Outcome};

/// The exit code or the signal of a program. At most one is set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessExit {
    /// Exit code of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// Signal that killed the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

impl ProcessExit {
    pub(crate) fn from_outcome(outcome: &Outcome) -> Self {
        Self::from_ending(outcome.ending())
    }

    pub(crate) fn from_ending(ending: Option<CallEnding>) -> Self {
        let (exit, signal) = match ending {
            Some(CallEnding::ExitCode(code)) => (Some(code), None),
            Some(CallEnding::Signal(signal)) => (None, Some(signal)),
            _ => (None, None),
        };
        Self { exit, signal }
    }
}

/// Returns the status of the response that a request ended with.
pub(crate) fn http_status(outcome: &Outcome) -> Option<u16> {
    match outcome.ending() {
        Some(CallEnding::HttpStatus(status)) => Some(status),
        _ => None,
    }
}
