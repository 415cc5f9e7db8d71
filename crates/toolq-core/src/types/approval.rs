//! Approval: which calls need one before they start, and what was decided.

use std::sync::Arc;

use serde_json::Value;

use crate::types::call::CallRef;
use crate::types::verdict::AcceptedCall;

/// What decides whether a call needs an approval, resolved from the tool, the file's rules and its defaults.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum ApprovalPolicy {
    /// No call does.
    #[default]
    Never,
    /// Every call does.
    Always,
    /// Calls whose input matches this schema do.
    When(Value),
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalDecision {
    /// It may.
    Yes,
    /// It may not.
    No,
}

impl ApprovalDecision {
    /// Returns the decision with this name. Anything but a yes is a no.
    pub fn from_name(name: &str) -> Self {
        match name {
            "yes" => Self::Yes,
            _ => Self::No,
        }
    }

    /// The name used in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
        }
    }
}

/// How a call was approved or denied.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        match self {
            Self::All => "all",
            Self::Named => "named",
            Self::Program => "program",
            Self::Terminal => "terminal",
            Self::Plan(_) => "plan",
            Self::Client(_) => "client",
            Self::Control => "control",
            Self::Callback => "callback",
            Self::Later => "approvals",
        }
    }
}
