//! What earlier runs recorded about a call.

use std::fmt::Debug;

use crate::types::agent::AgentUsage;
use crate::types::answer::ResultContent;
use crate::types::output_request::CutOutput;
use crate::types::status::Status;

/// What earlier runs recorded about a call, reduced to what this run needs.
#[derive(Debug, Clone, Default)]
pub enum ResumeState {
    /// As far as is known, the call was never started.
    #[default]
    NotStarted,
    /// It was started and may be started again.
    Started(Box<PriorAttempts>),
    /// It was started and may have taken effect. The tool's `probe` finds out.
    NeedsProbe(Box<PriorAttempts>),
    /// It was started and may have taken effect, and there is no way to find out.
    InDoubt(Box<PriorAttempts>),
    /// It has a result.
    Answered(Box<RestoredResult>),
}

impl ResumeState {
    /// Returns the attempts of earlier runs, if there were any.
    pub fn prior_attempts(self) -> Option<Box<PriorAttempts>> {
        match self {
            Self::Started(prior) | Self::NeedsProbe(prior) | Self::InDoubt(prior) => Some(prior),
            Self::NotStarted | Self::Answered(_) => None,
        }
    }
}

/// Attempts made by earlier runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriorAttempts {
    /// How many attempts were started.
    pub count: u32,
    /// Their idempotency key, if the log has it.
    pub idempotency_key: Option<String>,
}

/// A result that was restored from the session log.
#[derive(Debug, Clone)]
pub struct RestoredResult {
    /// How the call ended.
    pub status: Status,
    /// Whether the model received it as an error.
    pub is_error: bool,
    /// What the model received.
    pub content: ResultContent,
    /// What is left of its output, if that was cut.
    pub cut_output: Option<Box<CutOutput>>,
    /// What the agent used, if the call ran one.
    pub agent_usage: Option<Box<AgentUsage>>,
}
