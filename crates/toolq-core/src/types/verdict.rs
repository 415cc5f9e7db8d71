//! Checked calls: whether they may run, and whether somebody approved them.

use std::sync::Arc;

use strum::{EnumString, IntoStaticStr};

use crate::json::Input;
use crate::types::backing::{CommandInvocation, Invocation};
use crate::types::call::{Call, CallRef};
use crate::types::ending::NotExecutedCause;
use crate::types::outcome::{Outcome, Rejection};
use crate::types::policies::{CallLocks, Effect};
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
    pub approval: Option<Box<Approval>>,
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

impl AcceptedCall {
    /// Whether only a person can say what became of it, and until then it doesn't run again, if its result leaves that open.
    pub fn is_settled_by_people(&self) -> bool {
        self.tool.once.is_some() && self.tool.effect == Effect::Write && self.probe.is_none()
    }
}

/// What decided whether a call is concurrency-safe.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
pub enum SafetySource {
    /// The tool's `concurrency_safe`.
    #[display("concurrency_safe")]
    Declared,
    /// Its `concurrency_safe.when`, evaluated on this input.
    #[display("concurrency_safe.when")]
    When,
    /// The rule with this glob.
    #[display("rule {_0}")]
    Rule(Arc<str>),
    /// Its `effect`.
    #[display("effect")]
    Effect,
    /// Its locks: it changes what others may lock.
    #[display("locks")]
    Locks,
    /// Nothing was declared, so the call is not safe.
    #[display("default")]
    Default,
}

/// A call that waits for an approval, as the approver sees it.
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    /// The call.
    pub call: CallRef,
    /// What would run.
    pub accepted: AcceptedCall,
}

/// What an approver said about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Whether the call may start.
    pub decision: ApprovalDecision,
    /// How it was decided.
    pub means: ApprovalMeans,
    /// The reason for a no, which the model reads; a note for a yes.
    pub reason: Option<String>,
    /// The user who was asked.
    pub user: Option<String>,
}

/// Whether a call may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ApprovalDecision {
    /// It may.
    Yes,
    /// It may not.
    No,
}

impl ApprovalDecision {
    /// Returns the decision with this name. Anything but a yes is a no.
    pub fn from_name(name: &str) -> Self {
        name.parse().unwrap_or(Self::No)
    }

    /// The name used in the log.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// How a call was approved or denied.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ApprovalMeans {
    /// A flag that approves all calls.
    All,
    /// A flag that names the call by its id.
    Named,
    /// An approval program.
    Program,
    /// A person on the terminal.
    Terminal,
    /// A plan with this id, which was reviewed and then applied.
    Plan(Arc<str>),
    /// The person at a client of `toolq serve`, which calls itself so.
    Client(Option<Arc<str>>),
    /// The process that runs `toolq run --follow --control`.
    Control,
    /// The program that embeds toolq as a library.
    Callback,
    /// `toolq approvals`, after an earlier run had asked.
    #[strum(to_string = "approvals")]
    Later,
}

impl ApprovalMeans {
    /// Returns the id of the plan, if it was one.
    pub fn plan(&self) -> Option<&str> {
        match self {
            Self::Plan(id) => Some(id),
            _ => None,
        }
    }

    /// Returns what the client calls itself, if it was one.
    pub fn client(&self) -> Option<&str> {
        match self {
            Self::Client(name) => name.as_deref(),
            _ => None,
        }
    }

    /// The name used in the log.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}
