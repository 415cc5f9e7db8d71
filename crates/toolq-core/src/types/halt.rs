//! What ends a run before its calls are done, and what becomes of those that were not come to.

use std::time::Duration;

/// Why a call was never started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotExecuted {
    /// A call before it failed, and that tool says `on_failure: stop`.
    Preceding {
        /// The tool of the call that failed.
        tool: String,
    },
    /// A call of the same batch failed, and that tool says `on_failure: cancel_siblings`.
    Sibling {
        /// The tool of the call that failed.
        tool: String,
    },
    /// The stream that asked for it broke off before the end of its message.
    BrokeOff,
    /// The run, or the agent that asked for it, was ended before its turn came.
    Halted(Halt),
    /// A call before it was the session's answer.
    Completed {
        /// The tool of that call.
        tool: String,
    },
    /// The agent that asked has no turn left to read a result, and this is not its answer.
    LastTurn,
}

/// Why a run starts nothing more, and ends what runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// toolq got this signal.
    Signal(u8),
    /// Nobody takes results any more.
    OutputLost,
    /// What the run may use is used up.
    OverBudget(Budget),
    /// The agent that asked was ended. Only what it asked for ends.
    AgentOver,
}

/// What a run may use, over all its turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// Calls that are started.
    Calls(u64),
    /// Time from its first turn on.
    Time(Duration),
    /// Bytes that tools write as their results, cut or not.
    Output(u64),
}
