//! The calls of a turn that won't run.

use std::borrow::Cow;

use crate::types::{Call, OutcomeKind, ProblemDetail, Rejection, Status};

/// A call that won't run.
#[derive(Debug, Clone, Copy)]
pub struct RejectedCall<'a> {
    /// The call as requested.
    pub call: &'a Call,
    /// Why.
    pub cause: SkipCause<'a>,
}

/// Why a call won't run.
#[derive(Debug, Clone, Copy)]
pub enum SkipCause<'a> {
    /// It was rejected.
    Rejected(&'a Rejection),
    /// An earlier call of this tool was rejected, and the tool has `on_failure: stop`.
    AfterRejected(&'a str),
    /// An earlier call of this tool has failed, as the memory says, and the tool has `on_failure: stop`.
    AfterFailed(&'a str),
    /// A call of this tool in the same batch has failed, as the memory says, and the tool has `on_failure: cancel_siblings`.
    SiblingFailed(&'a str),
    /// An earlier call of this tool is in doubt.
    AfterDoubt(&'a str),
    /// An earlier call of this tool ends the session.
    AfterCompletion(&'a str),
}

impl<'a> RejectedCall<'a> {
    /// Returns the reason: the status that the call would have.
    pub fn reason(&self) -> Status {
        match self.cause {
            SkipCause::Rejected(rejection) => rejection.reason.status(),
            _ => Status::NotExecuted,
        }
    }

    /// Returns the word for what becomes of it.
    pub fn kind(&self) -> OutcomeKind {
        match self.cause {
            SkipCause::Rejected(_) => OutcomeKind::Rejected,
            _ => OutcomeKind::Skipped,
        }
    }

    /// Returns one entry per problem; at least one.
    pub fn details(&self) -> Cow<'a, [ProblemDetail]> {
        let message = match self.cause {
            SkipCause::Rejected(rejection) => return Cow::Borrowed(&rejection.details),
            SkipCause::AfterCompletion(tool) => {
                format!("the preceding {tool} call ends the session")
            }
            SkipCause::AfterRejected(tool) => {
                format!("the preceding {tool} call is rejected, and {tool} has `on_failure: stop`")
            }
            SkipCause::AfterFailed(tool) => {
                format!("the preceding {tool} call has failed, and {tool} has `on_failure: stop`")
            }
            SkipCause::SiblingFailed(tool) => format!(
                "the {tool} call of its batch has failed, and {tool} has `on_failure: cancel_siblings`"
            ),
            SkipCause::AfterDoubt(tool) => format!("the preceding {tool} call is in doubt"),
        };
        Cow::Owned(vec![ProblemDetail::new("", message)])
    }
}
