//! Verdicts: whether a call may run, decided before anything starts.

use std::sync::Arc;

use crate::json::Input;
use crate::types::approval::Approval;
use crate::types::call::{Call, CallRef};
use crate::types::halt::NotExecutedCause;
use crate::types::invocation::{CommandInvocation, Invocation};
use crate::types::locks::CallLocks;
use crate::types::outcome::Outcome;
use crate::types::status::Status;
use crate::types::tool::Tool;

/// A call, and what was decided about it before anything ran.
#[derive(Debug, Clone)]
pub struct CheckedCall {
    /// The call as requested.
    pub call: Call,
    /// Whether it may run.
    pub verdict: Verdict,
    /// Its outcome, if that is known: an earlier run has made it. A check knows only what the input says.
    pub known: Option<Box<Outcome>>,
    /// What was said about it when an earlier run asked whether it may start.
    pub approval: Option<Approval>,
    /// Its outcome if it is left alone, because of an earlier start that nothing is known of yet.
    pub unsettled: Option<Box<Outcome>>,
    /// An earlier run has made it, and it runs again on purpose.
    pub is_renewed: bool,
    /// The position of the call of this turn that it repeats: with the same id, tool and input. Only that one runs, and both
    /// have its result.
    pub repeats: Option<usize>,
}

/// What a model requested, and what that means.
#[derive(Debug, Clone, Copy)]
pub struct CallRequest<'a> {
    /// The call as requested.
    pub call: &'a Call,
    /// What runs. `None` if the call was rejected, or if toolq only records it.
    pub accepted: Option<&'a AcceptedCall>,
}

impl CheckedCall {
    /// Returns what was requested.
    pub fn request(&self) -> CallRequest<'_> {
        CallRequest {
            call: &self.call,
            accepted: self.verdict.accepted(),
        }
    }
}

/// What arrives while a turn is read, in call order.
#[derive(Debug, Clone)]
pub enum TurnArrival {
    /// The next call. It may start.
    Call(Box<CheckedCall>),
    /// More of a call that is still streaming.
    PartialInput {
        /// The call. It has no batch yet.
        call: CallRef,
        /// The prefix of its input that has arrived: the beginning of a JSON object.
        input_so_far: String,
    },
    /// An earlier call must not run after all, unless it has already started.
    Revoked {
        /// Its position in the turn.
        position: usize,
        /// Why not.
        rejection: Rejection,
    },
    /// Calls that haven't started, and calls that have yet to arrive, don't run for this reason.
    RestSkipped(NotExecutedCause),
}

/// Whether a call may run.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// It may run, as resolved here.
    Accepted(Box<AcceptedCall>),
    /// It may not run. The call is answered with an error.
    Rejected(Box<Rejection>),
}

impl Verdict {
    /// Returns the verdict about a call that may not run.
    pub fn rejected(mut rejection: Rejection) -> Self {
        rejection.details.shrink_to_fit();
        Self::Rejected(Box::new(rejection))
    }

    /// Returns the call as it may run, or `None` if it may not.
    pub fn accepted(&self) -> Option<&AcceptedCall> {
        match self {
            Self::Accepted(accepted) => Some(accepted),
            Self::Rejected(_) => None,
        }
    }

    /// Whether the call completes its session or agent, so that no later call runs.
    pub fn is_completion(&self) -> bool {
        matches!(self, Self::Accepted(accepted)
            if matches!(accepted.invocation, Some(Invocation::Completion(_))))
    }
}

/// A call that may run, with everything needed to run it.
#[derive(Debug, Clone)]
pub struct AcceptedCall {
    /// The tool that it named.
    pub tool: Arc<Tool>,
    /// The input to execute: with the schema's defaults, validated, and coerced if necessary.
    pub input: Input,
    /// The input as received, if defaults or coercion changed it.
    pub before_coercion: Option<Input>,
    /// Whether coercion changed it, not just defaults.
    pub is_coerced: bool,
    /// Whether the call may run concurrently with others.
    pub safe: bool,
    /// What decided that.
    pub safety_source: SafetySource,
    /// What it locks. With locks, they decide for which other calls with locks it waits.
    pub locks: Option<CallLocks>,
    /// Whether it needs an approval before it starts.
    pub needs_approval: bool,
    /// What to run, or `None` if the tool has no backing.
    pub invocation: Option<Invocation>,
    /// The tool's `probe`, which finds out whether an earlier run completed the call.
    pub probe: Option<Box<CommandInvocation>>,
}

/// What decided whether a call is concurrency-safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SafetySource {
    /// The tool's `concurrency_safe`.
    Declared,
    /// Its `concurrency_safe.when`, evaluated on this input.
    When,
    /// The rule with this glob.
    Rule(Arc<str>),
    /// Its `effect`.
    Effect,
    /// Its locks: it changes what others may lock.
    Locks,
    /// Nothing was declared, so the call is not safe.
    Default,
}

impl std::fmt::Display for SafetySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Declared => f.write_str("concurrency_safe"),
            Self::When => f.write_str("concurrency_safe.when"),
            Self::Rule(glob) => write!(f, "rule {glob}"),
            Self::Effect => f.write_str("effect"),
            Self::Locks => f.write_str("locks"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// Why a call may not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The kind of rejection.
    pub reason: RejectionReason,
    /// The problems found. Never empty.
    pub details: Vec<ProblemDetail>,
}

/// The kinds of rejection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RejectionReason {
    /// No tool has this name.
    UnknownTool,
    /// The input violates the tool's schema, or the tool can't use a value where its template puts it.
    InvalidInput,
    /// The arguments are not a JSON object.
    InvalidArguments,
    /// The tool failed to describe its input, or its schema can't be used.
    UnusableTool,
    /// The response hit a token limit inside this call.
    Truncated,
    /// The stream broke off inside this call.
    StreamAborted,
    /// The response with this call was refused, has failed, or was canceled.
    ResponseRefused,
    /// The conversation has a result that may be that of this call, but doesn't say so.
    MisplacedResult,
    /// A path leads outside the root.
    PathOutsideRoot,
    /// A path leads a tool with effects to one of toolq's own files.
    OwnFile,
    /// The call would nest agents deeper than `max_depth` allows.
    TooDeep,
    /// The calling agent runs concurrently with other calls, and this call isn't concurrency-safe.
    NotConcurrencySafe,
}

impl RejectionReason {
    /// The status of a call that is rejected for this reason.
    pub fn status(self) -> Status {
        match self {
            Self::UnknownTool => Status::UnknownTool,
            Self::InvalidInput | Self::UnusableTool => Status::InvalidInput,
            Self::InvalidArguments => Status::InvalidArguments,
            Self::Truncated | Self::StreamAborted => Status::Truncated,
            Self::ResponseRefused => Status::ResponseRefused,
            Self::MisplacedResult => Status::MisplacedResult,
            Self::PathOutsideRoot | Self::OwnFile => Status::PathOutsideRoot,
            Self::TooDeep => Status::TooDeep,
            Self::NotConcurrencySafe => Status::NotConcurrencySafe,
        }
    }
}

/// One problem with an input.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ProblemDetail {
    /// JSON pointer into the input. An empty pointer is the whole input.
    pub path: String,
    /// What is wrong there. Never contains the value itself.
    pub message: String,
    /// The keyword of `input_schema` that the input violates, if it is about the schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyword: Option<String>,
    /// JSON pointer into the schema, to that keyword.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_path: Option<String>,
}

impl ProblemDetail {
    /// Creates a problem that no keyword of the schema is about.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
            keyword: None,
            schema_path: None,
        }
    }
}
