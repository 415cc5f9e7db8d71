//! The calls of a turn that don't run because it is known what became of them.

use std::borrow::Cow;

use serde::Serialize;

use crate::answer::describe_failure;
use crate::plan::invocation_line::{self, InvocationJson, SandboxJson};
use crate::text::format_time;
use crate::types::{
    AcceptedCall, ApprovalRequest, Call, CheckedCall, DoubtCause, MaskedJson, MaskedText, Outcome,
    OutcomeKind, ProblemDetail, Rejection, RestoredResult, Status,
};
use redact::Mask;

/// A call that the memory or the input answers.
#[derive(Debug, Clone, Copy)]
pub struct RememberedCall<'a> {
    /// The call as requested.
    pub call: &'a Call,
    /// What it is answered with.
    pub outcome: &'a Outcome,
}

impl<'a> RememberedCall<'a> {
    /// Returns the call if it is known what became of it.
    pub(crate) fn of(checked: &'a CheckedCall) -> Option<Self> {
        let outcome = checked.known.as_deref()?;
        let call = &checked.call;
        Some(Self { call, outcome })
    }

    /// Whether it may have had its effect, and nobody knows.
    pub fn is_in_doubt(&self) -> bool {
        self.outcome.is_in_doubt()
    }

    /// Returns the status of its result.
    pub fn status(&self) -> Status {
        self.outcome.status()
    }

    /// Returns when what is known of it happened, in milliseconds since 1970, and the log that says so.
    pub fn source(&self) -> Option<(u64, String)> {
        match self.outcome {
            Outcome::Restored(RestoredResult {
                source: Some(source),
                ..
            }) => Some((source.ended_ms, source.log.display().to_string())),
            Outcome::InDoubt {
                cause: DoubtCause::EndNotLogged(Some(start)),
                ..
            } => Some((start.started_ms?, start.log.display().to_string())),
            _ => None,
        }
    }

    /// `ok, ran 2026-01-01 12:03:00 UTC (LOG)`, `in doubt, started 2026-01-01 12:03:00 UTC (LOG)`, or `settled 2026-01-01 12:03:00 UTC
    /// (LOG)`.
    pub fn describe(&self, names_log: bool, mask: &Mask) -> String {
        let label = self.status().label();
        let what = match self.outcome {
            Outcome::Restored(restored) if restored.status == Status::Resolved => {
                "settled".to_owned()
            }
            Outcome::Restored(_) => format!("{label}, ran"),
            _ => format!("{label}, started"),
        };
        let at = self.source().map(|(ms, log)| {
            let log = if names_log {
                format!(" ({log})")
            } else {
                String::new()
            };
            format!("{what} {}{log}", format_time(ms))
        });
        let text = match self.outcome {
            Outcome::Restored(_) | Outcome::InDoubt { .. } => at.unwrap_or(label),
            outcome => describe_failure(self.call, None, outcome),
        };
        mask.apply(&text).into_owned()
    }
}

// The calls of a turn that won't run.

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

// Renders a call for the user or program that has to approve it.

/// What an approval program reads.
#[derive(Serialize)]
struct ApprovalQuestionJson<'a> {
    tool_use_id: MaskedText<'a>,
    tool_name: MaskedText<'a>,
    effect: &'static str,
    /// The input that would run.
    input: MaskedJson<'a>,
    /// `None` if the tool has no backing.
    runs: Option<InvocationJson<'a>>,
    /// What its program can reach; missing if that isn't confined.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<SandboxJson>,
    turn: usize,
    /// The agent that makes the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<MaskedText<'a>>,
}

/// Renders the question that an approval program reads: an object on one line. It contains the whole input, regardless
/// of its size.
///
/// # Errors
/// The question can't be serialized, so the call can't be approved.
pub fn render_approval_question(
    request: &ApprovalRequest,
    mask: &Mask,
) -> Result<String, serde_json::Error> {
    let ApprovalRequest { call, accepted } = request;
    let question = ApprovalQuestionJson {
        tool_use_id: MaskedText(&call.tool_use_id, mask),
        tool_name: MaskedText(&call.tool_name, mask),
        effect: accepted.tool.effect.name(),
        input: MaskedJson(accepted.input.as_raw(), mask),
        runs: InvocationJson::new(accepted, mask),
        sandbox: SandboxJson::new(accepted, mask),
        turn: call.turn,
        agent: call
            .parent
            .as_ref()
            .map(|agent| MaskedText(&agent.tool_name, mask)),
    };
    Ok(serde_json::to_string(&question)? + "\n")
}

/// Renders what the program of a call can reach on one line for people, with control characters escaped. `None` if it
/// isn't confined.
pub fn render_sandbox(accepted: &AcceptedCall, mask: &Mask) -> Option<String> {
    invocation_line::render_sandbox(accepted, mask)
}

/// Renders what a call would run on one line for people, with control characters escaped. `None` if its tool has no
/// backing.
pub fn render_invocation(accepted: &AcceptedCall, mask: &Mask) -> Option<String> {
    invocation_line::render_invocation(accepted, mask)
}
