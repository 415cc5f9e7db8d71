//! Why a run stops early, and why calls are never started.

use std::time::Duration;

/// Why a call was never started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotExecutedCause {
    /// An earlier call failed, and its tool has `on_failure: stop`.
    PrecedingFailed {
        /// The tool of the call that failed.
        tool: String,
    },
    /// Whether an earlier call had its effect isn't known.
    PrecedingInDoubt {
        /// The tool of the call in doubt.
        tool: String,
    },
    /// An earlier call needs an approval that wasn't given. Only calls that aren't `read` wait for that.
    PrecedingNeedsApproval {
        /// The tool of that call.
        tool: String,
    },
    /// A call of the same batch failed, and its tool has `on_failure: cancel_siblings`.
    SiblingFailed {
        /// The tool of the call that failed.
        tool: String,
    },
    /// The stream broke off before the end of the message that contains the call.
    StreamAborted,
    /// The run, or the agent that made the call, stopped before the call could start.
    Halted(HaltCause),
    /// An earlier call completed the session.
    SessionCompleted {
        /// The tool of that call.
        tool: String,
    },
    /// The agent has no turn left to read a result, and this call isn't its answer.
    LastTurn,
}

/// Why a run starts no more calls and stops the running ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HaltCause {
    /// toolq received this signal.
    Signal(u8),
    /// The reader of the results is gone.
    OutputLost,
    /// A budget of the run is used up.
    OverBudget(BudgetLimit),
    /// The agent that made the calls was stopped. Affects only its own calls.
    AgentStopped,
    /// The client of a server canceled the call. Affects only this call.
    ClientCanceled,
    /// The client of a server has left.
    ClientLeft,
    /// The approver of a call stopped the run.
    ApproverStopped,
    /// The turn lost too many workers of a queue, so it isn't run anymore.
    WorkersLost,
}

/// A budget of a run, over all its turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetLimit {
    /// Maximum number of calls started.
    Calls(u64),
    /// Maximum time since the first turn.
    Time(Duration),
    /// Maximum number of bytes that tools produce as results, before any cut.
    Output(u64),
}
