//! Who decides whether a call may start.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use toolq_core::types::{Approval, ApprovalRequest};

/// Who says whether a call that needs an approval may start.
#[derive(Debug, Clone)]
pub enum Approver {
    /// This user approved all calls in advance.
    All {
        /// The name of the user, if it is known.
        user: Option<String>,
    },
    /// This program decides. It reads the call as JSON on stdin; exit code 0 is a yes, and 1 is a no with the reason on
    /// stdout. Anything else stops the run.
    Program(PathBuf),
    /// A person decides.
    Person(Arc<dyn ApprovalPrompt>),
    /// Some calls were approved before the run. Another approver decides about the others.
    Planned {
        /// The calls that were approved.
        approvals: Arc<dyn PriorApprovals>,
        /// Who decides about the others, if there is another approver.
        otherwise: Option<Box<Approver>>,
    },
}

/// Calls that were approved before the run began.
pub trait PriorApprovals: fmt::Debug + Send + Sync {
    /// Returns the approval of exactly this call, if it has one.
    fn approval_of(&self, request: &ApprovalRequest) -> Option<Approval>;
}

/// Asks a person.
pub trait ApprovalPrompt: fmt::Debug + Send + Sync {
    /// Asks about one call. Dropping the future withdraws the question.
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> ApprovalFuture<'a>;
}

/// The reply to come.
pub type ApprovalFuture<'a> = Pin<Box<dyn Future<Output = ApprovalReply> + Send + 'a>>;

/// The result of a question about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalReply {
    /// The call was approved or denied.
    Decided(Approval),
    /// No approver can decide about this call, so it doesn't run.
    Unavailable,
    /// The run stops, for this reason: the question couldn't be asked, or the approver stopped the run.
    Stopped(String),
}

impl ApprovalReply {
    /// The reply to a question whose answer is no longer needed.
    pub(crate) fn withdrawn() -> Self {
        Self::Stopped("the question was withdrawn".to_owned())
    }
}
