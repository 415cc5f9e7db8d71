use std::sync::Arc;

use crate::json::Input;
use crate::types::call::{Call, CallRef};
use crate::types::halt::NotExecuted;
use crate::types::invocation::{CommandInvocation, Invocation};
use crate::types::resume::Past;
use crate::types::tool::Tool;

/// A call and what was decided of it before anything ran.
#[derive(Debug, Clone)]
pub struct Checked {
    /// As it was asked.
    pub call: Call,
    /// Whether it may run.
    pub verdict: Verdict,
    /// What runs before this one made of it.
    pub past: Past,
}

/// What arrives of a turn, in call order.
#[derive(Debug, Clone)]
pub enum Arrival {
    /// The next call. It may start.
    Call(Box<Checked>),
    /// A call that is still being spoken: the JSON of its input as far as it is there.
    Part {
        /// The call, which has no batch yet.
        call: CallRef,
        /// Some begin of an object.
        text: String,
    },
    /// A call that arrived before may not run after all, unless it has started.
    Revoked {
        /// Its position in the turn.
        position: usize,
        /// Why not.
        rejection: Rejection,
    },
    /// What has not started, and what still comes, does not run, for this reason.
    Over(NotExecuted),
}

/// Whether a call may run.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// Yes, so.
    Accepted(Box<Accepted>),
    /// No; it is answered with an error.
    Rejected(Rejection),
}

impl Verdict {
    /// Whether the call is the answer of a session or an agent, behind which nothing runs.
    pub fn is_completion(&self) -> bool {
        matches!(self, Self::Accepted(accepted)
            if matches!(accepted.invocation, Some(Invocation::Completion(_))))
    }
}

/// A call that may run, with all that running it needs.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// The tool that it named.
    pub tool: Arc<Tool>,
    /// The input that is executed: validated, and coerced where that was needed.
    pub input: Input,
    /// The input as it came, where coercion changed it.
    pub before_coercion: Option<Input>,
    /// Whether it may run beside others.
    pub safe: bool,
    /// What decided that.
    pub decided_by: DecidedBy,
    /// What it runs; none where the tool has no backing.
    pub invocation: Option<Invocation>,
    /// What says whether it was done before, where the tool has a `probe`.
    pub probe: Option<CommandInvocation>,
}

/// What decided whether a call is concurrency-safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecidedBy {
    /// The tool's `concurrency_safe`.
    Declared,
    /// Its `concurrency_safe.when` over this input.
    When,
    /// The rule of this glob.
    Rule(String),
    /// Its `effect`.
    Effect,
    /// Nothing: not safe.
    Default,
}

impl std::fmt::Display for DecidedBy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Declared => f.write_str("concurrency_safe"),
            Self::When => f.write_str("concurrency_safe.when"),
            Self::Rule(glob) => write!(f, "rule {glob}"),
            Self::Effect => f.write_str("effect"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// Why a call may not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The kind.
    pub reason: Reason,
    /// One for each problem of the input; at least one.
    pub details: Vec<Detail>,
}

/// The kinds of rejection, in the words of `plan --format json` and of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No tool has this name.
    UnknownTool,
    /// The input breaks the tool's schema, or a value may not stand where the tool puts it.
    InvalidInput,
    /// What stands in the input's place is no JSON object.
    InvalidArguments,
    /// Another call of the turn has the same id.
    DuplicateId,
    /// The answer ended at a token limit inside this call.
    Truncated,
    /// The stream broke off inside this call.
    BrokenOff,
    /// A path leads out of the root.
    PathOutsideRoot,
    /// Its agent may be called by agents no deeper.
    TooDeep,
    /// Its agent runs beside other calls, and this call may not.
    NotConcurrencySafe,
}

impl Reason {
    /// The word of plans and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown_tool",
            Self::InvalidInput => "invalid_input",
            Self::InvalidArguments => "invalid_arguments",
            Self::DuplicateId => "duplicate_id",
            Self::Truncated | Self::BrokenOff => "truncated",
            Self::PathOutsideRoot => "path_outside_root",
            Self::TooDeep => "too_deep",
            Self::NotConcurrencySafe => "not_concurrency_safe",
        }
    }
}

/// One problem of an input.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Detail {
    /// JSON pointer into the input; empty is the input itself.
    pub path: String,
    /// What is wrong there; never holds the value itself.
    pub message: String,
}
