use std::fmt::Debug;

use crate::types::agent::AgentUse;
use crate::types::answer::Content;

/// What runs before this one made of a call, as far as it decides what this one does with it.
#[derive(Debug, Clone, Default)]
pub enum Past {
    /// It was never started, as far as anybody knows.
    #[default]
    None,
    /// It was started, and may be started again.
    Started(Begun),
    /// It was started and may have done its work; its tool's `probe` is asked.
    Unsure(Begun),
    /// It was started and may have done its work; nobody can say.
    InDoubt(Begun),
    /// It has its answer.
    Answered(Recalled),
}

impl Past {
    /// What was started before.
    pub fn begun(self) -> Option<Begun> {
        match self {
            Self::Started(begun) | Self::Unsure(begun) | Self::InDoubt(begun) => Some(begun),
            Self::None | Self::Answered(_) => None,
        }
    }
}

/// Attempts of runs before this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// How many were started.
    pub attempts: u32,
    /// What they were known by; none where the log doesn't say.
    pub key: Option<String>,
    /// It is an agent's, and one that the agent asked for may have done its work; nobody knows before the agent comes to
    /// it again.
    pub doubtful: bool,
}

/// An answer that the session log holds.
#[derive(Debug, Clone)]
pub struct Recalled {
    /// How the call ended, in the word of the log.
    pub status: &'static str,
    /// Whether the model was told of an error.
    pub is_error: bool,
    /// What the model read.
    pub content: Content,
    /// What it used, where an agent worked on it.
    pub agent: Option<Box<AgentUse>>,
}

impl Recalled {
    /// Whether the call ran to an end of its own, well or not.
    pub(super) fn is_completed(&self) -> bool {
        matches!(self.status, "ok" | "failed" | "bad_output")
    }

    /// Whether it was ended for the sake of something else.
    pub(super) fn is_given_up(&self) -> bool {
        matches!(self.status, "cancelled" | "interrupted" | "over_budget")
    }

    /// Whether it may have had its effect, which nobody knows.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.status == "in_doubt"
    }
}
