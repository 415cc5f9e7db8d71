use toolq_core::types::{AgentFault, Captured, Doubt, Outcome, Refused};

/// Why an agent ended without an answer.
#[derive(Debug)]
pub(crate) enum Broken {
    /// By itself.
    Fault(AgentFault),
    /// As a request does, before the model was asked or while it was.
    Outcome(Outcome),
}

impl From<AgentFault> for Broken {
    fn from(fault: AgentFault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Refused> for Broken {
    fn from(Refused(why): Refused) -> Self {
        Self::Fault(AgentFault::LogRefused(why))
    }
}

impl From<Outcome> for Broken {
    fn from(outcome: Outcome) -> Self {
        Self::Outcome(outcome)
    }
}

/// How an agent ends of which a call is in doubt: what its model would be told is not known yet.
pub(crate) fn in_doubt(doubt: Doubt) -> Outcome {
    Outcome::InDoubt {
        doubt,
        output: String::new(),
        captured: Captured::default(),
    }
}
