//! Approval of calls by a function of the program.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use redact::Mask;
use toolq_core::plan::render_approval_question;
use toolq_core::types::{Approval, ApprovalDecision, ApprovalMeans, ApprovalRequest};
use toolq_engine::{ApprovalFuture, ApprovalPrompt, ApprovalReply};

/// A call that needs an approval.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ApprovalQuestion {
    /// The id that the model gave the call.
    pub tool_use_id: String,
    /// The name of the tool.
    pub tool_name: String,
    /// What would run, as `toolq run --approve-with` passes it to its program: a JSON object without secrets.
    pub json: String,
}

/// Whether a call may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// It may.
    Yes,
    /// It may not.
    No {
        /// Why; the model reads it.
        reason: Option<String>,
    },
}

type AnswerFuture = Pin<Box<dyn Future<Output = ApprovalAnswer> + Send>>;

/// The function that decides about approvals, and the secrets that are hidden from it.
#[derive(Clone, derive_more::Debug)]
#[debug("ApprovalCallback")]
pub(crate) struct ApprovalCallback {
    ask: Arc<dyn Fn(ApprovalQuestion) -> AnswerFuture + Send + Sync>,
    mask: Arc<Mask>,
}

impl ApprovalCallback {
    pub(crate) fn new<F, R>(ask: F) -> Self
    where
        F: Fn(ApprovalQuestion) -> R + Send + Sync + 'static,
        R: Future<Output = ApprovalAnswer> + Send + 'static,
    {
        Self {
            ask: Arc::new(move |question| Box::pin(ask(question)) as AnswerFuture),
            mask: Arc::default(),
        }
    }

    /// Masks secrets in the questions.
    pub(crate) fn with_mask(self, mask: &Arc<Mask>) -> Self {
        Self {
            mask: Arc::clone(mask),
            ..self
        }
    }

    async fn reply(&self, request: &ApprovalRequest) -> ApprovalReply {
        let mask = &self.mask;
        let json = match render_approval_question(request, mask) {
            Ok(json) => json.trim_end().to_owned(),
            Err(error) => {
                return ApprovalReply::Stopped(format!("the question can't be written: {error}"));
            }
        };
        let question = ApprovalQuestion {
            tool_use_id: mask.apply(&request.call.tool_use_id).into_owned(),
            tool_name: mask.apply(&request.call.tool_name).into_owned(),
            json,
        };
        let (decision, reason) = match (self.ask)(question).await {
            ApprovalAnswer::Yes => (ApprovalDecision::Yes, None),
            ApprovalAnswer::No { reason } => (ApprovalDecision::No, reason),
        };
        ApprovalReply::Decided(Approval {
            decision,
            means: ApprovalMeans::Callback,
            reason,
            user: None,
        })
    }
}

impl ApprovalPrompt for ApprovalCallback {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> ApprovalFuture<'a> {
        Box::pin(self.reply(request))
    }
}
