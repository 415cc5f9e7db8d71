//! Functions of the program that are called back: with the events of the engine as owned values, and with questions for
//! approval. Secrets are masked in both.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use redact::Mask;
use toolq_core::plan::render_approval_question;
use toolq_core::types::{
    Approval, ApprovalDecision, ApprovalMeans, ApprovalRequest, CallRef, DescribeResult,
    Event as EngineEvent, Status,
};
use toolq_engine::{ApprovalFuture, ApprovalPrompt, ApprovalReply};

/// A callback that receives events.
pub(crate) type EventCallback<'a> = Box<dyn FnMut(&Event) + Send + 'a>;

/// What happens while calls are answered. The order is that of `toolq run --events`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A call was queued. If it was rejected, its [`Finished`](Self::Finished) event follows immediately.
    Queued {
        /// The call.
        call: EventCall,
    },
    /// An attempt is about to start.
    Started {
        /// The call.
        call: EventCall,
        /// Counted from 1.
        attempt: u32,
    },
    /// A tool reported its progress.
    Progress {
        /// The call.
        call: EventCall,
        /// A short text for people.
        message: Option<String>,
        /// From 0 to 1.
        fraction: Option<f64>,
    },
    /// An attempt failed, and another follows.
    Retrying {
        /// The call.
        call: EventCall,
        /// The attempt that failed, counted from 1.
        attempt: u32,
        /// The time until the next attempt.
        wait: Duration,
    },
    /// A call has its result.
    Finished {
        /// The call.
        call: EventCall,
        /// How it ended, as in the session log: `ok`, `failed`, `timeout` …
        status: Status,
        /// Whether its result is an error.
        is_error: bool,
        /// From the first start to the end; zero for a call that never started.
        duration: Duration,
        /// 0 for a call that never started.
        attempts: u32,
    },
    /// An agent sends its next request to its model.
    AgentTurn {
        /// The call that the agent is working on.
        call: EventCall,
        /// The agent's name.
        agent: String,
        /// Counted from 0.
        turn: u64,
        /// The agent's limit.
        max_turns: u64,
    },
    /// A tool that describes itself failed to do so. Its calls are rejected.
    DescribeFailed {
        /// The tool's name.
        tool: String,
        /// Why.
        reason: String,
    },
    /// Every call of a message has its result.
    TurnFinished {
        /// Counted from 0 over all messages of this [`Toolq`](crate::Toolq).
        turn: usize,
    },
}

/// The call that an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventCall {
    /// The id that the model gave it, or one derived from its place and input.
    pub tool_use_id: String,
    /// The tool's name, as the model wrote it.
    pub tool_name: String,
    /// The message, counted from 0 over all messages of this [`Toolq`](crate::Toolq).
    pub turn: usize,
    /// Its place in the message, counted from 0.
    pub position: usize,
    /// For a call made by an agent: the `tool_use_id` of the call that the agent is working on.
    pub agent_tool_use_id: Option<String>,
}

impl EventCall {
    fn new(call: &CallRef, mask: &Mask) -> Self {
        let text = |text: &str| mask.apply(text).into_owned();
        let parent = call.parent.as_deref();
        Self {
            tool_use_id: text(&call.tool_use_id),
            tool_name: text(&call.tool_name),
            turn: call.turn,
            position: call.position,
            agent_tool_use_id: parent.map(|parent| text(&parent.tool_use_id)),
        }
    }
}

impl Event {
    /// Translates an event of the engine. Returns `None` for events that only the log needs.
    pub(crate) fn from_engine(event: &EngineEvent<'_>, mask: &Mask) -> Option<Self> {
        let named = |call: &CallRef| EventCall::new(call, mask);
        let text = |text: &str| mask.apply(text).into_owned();
        Some(match event {
            EngineEvent::Queued { checked, .. } => Self::Queued {
                call: named(&CallRef::new(&checked.call, None)),
            },
            EngineEvent::Started { call, attempt, .. } => Self::Started {
                call: named(call),
                attempt: *attempt,
            },
            EngineEvent::Status {
                call,
                message,
                progress,
                ..
            } => Self::Progress {
                call: named(call),
                message: message.map(text),
                fraction: *progress,
            },
            EngineEvent::Retrying {
                call,
                attempt,
                wait,
                ..
            } => Self::Retrying {
                call: named(call),
                attempt: *attempt,
                wait: *wait,
            },
            EngineEvent::Finished {
                call,
                outcome,
                answer,
                duration,
                attempts,
                ..
            } => Self::Finished {
                call: named(call),
                status: outcome.status(),
                is_error: answer.is_error,
                duration: *duration,
                attempts: *attempts,
            },
            EngineEvent::AgentProgress {
                call,
                agent,
                turn,
                max_turns,
            } => Self::AgentTurn {
                call: named(call),
                agent: text(agent),
                turn: *turn,
                max_turns: *max_turns,
            },
            EngineEvent::Described { tool, .. } => match tool.describe_result() {
                Some(DescribeResult::Err(reason)) => Self::DescribeFailed {
                    tool: tool.name.clone(),
                    reason: text(reason),
                },
                _ => return None,
            },
            EngineEvent::QueueDrained { turn } => Self::TurnFinished { turn: *turn },
            _ => return None,
        })
    }
}

// Approval of calls.

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
