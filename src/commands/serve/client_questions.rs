//! The questions to the people at clients whether calls may start.
//!
//! In the legacy era, the server sends the client a request, and the call waits for the response. In the modern era, the
//! call is answered with the question, and the client makes the call again with the person's reply, which then counts for
//! this one call.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::commands::serve::served_client::{ClientCall, ClientIdentity, new_random_id};
use redact::Mask;
use toolq_core::plan::{render_invocation, render_sandbox};
use toolq_core::text::{escape, truncate};
use toolq_core::types::{Approval, ApprovalDecision, ApprovalMeans, ApprovalRequest};
use toolq_engine::ApprovalReply;
use toolq_mcp::server::{Elicitation, ElicitationReply, InputResponse, QuestionId};

/// How long a question may stay without an answer. A person may be away, so this only ends what was forgotten.
const QUESTION_TIMEOUT: Duration = Duration::from_hours(1);

/// How often a question looks whether its client is still there.
const CONNECTION_CHECK: Duration = Duration::from_secs(1);

/// The longest reason, in characters.
const MAX_REASON_CHARS: usize = 2000;

/// The digest of everything in the question to a person, including its secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuestionDigest([u8; 32]);

/// A request to a client that has no answer yet. Dropping it withdraws the question.
pub(crate) struct ClientQuestion {
    asked: ClientCall,
    question: QuestionId,
}

impl ClientQuestion {
    /// Asks a client, and waits for what the person says.
    pub(crate) async fn ask(asked: ClientCall, question: &Elicitation) -> ElicitationReply {
        let (sender, mut said) = oneshot::channel();
        let Some((question, lines)) = asked.client.ask(asked.id, question, sender) else {
            return ElicitationReply::Canceled;
        };
        let pending = Self { asked, question };
        if !pending.asked.reply.send(lines) {
            return ElicitationReply::Canceled;
        }
        let deadline = Instant::now() + QUESTION_TIMEOUT;
        loop {
            match timeout(CONNECTION_CHECK, &mut said).await {
                Ok(reply) => return reply.unwrap_or(ElicitationReply::Canceled),
                // If the client is gone, there is no reader for the result of the call.
                Err(_) if !pending.asked.reply.is_open() || Instant::now() >= deadline => {
                    return ElicitationReply::Canceled;
                }
                Err(_) => {}
            }
        }
    }
}

impl Drop for ClientQuestion {
    fn drop(&mut self) {
        let lines = self.asked.client.withdraw_question(self.question);
        if !lines.is_empty() {
            self.asked.reply.send(lines);
        }
    }
}

impl QuestionDigest {
    pub(crate) fn new(request: &ApprovalRequest) -> Self {
        Self::of_text(&question_text(request, &Mask::default()))
    }

    fn of_text(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }
}

/// Renders the question and its form.
pub(crate) fn question(request: &ApprovalRequest, mask: &Mask) -> Elicitation {
    Elicitation {
        message: question_text(request, mask),
        requested_schema: json!({
            "type": "object",
            "properties": {
                "approve": {"type": "boolean", "title": "Approve", "description": "Whether the call may run"},
                "reason": {"type": "string", "title": "Reason", "description": "If it may not, the model reads why"},
            },
            "required": ["approve"],
        }),
    }
}

/// Renders what a person reads: all of the call, with every control character escaped, since a model wrote it.
fn question_text(request: &ApprovalRequest, mask: &Mask) -> String {
    let ApprovalRequest { call, accepted } = request;
    let shown = |text: &str| escape(&mask.apply(text)).into_owned();
    let agent = call.parent.as_ref().map_or_else(String::new, |agent| {
        format!(" for the agent {}", shown(&agent.tool_name))
    });
    let runs = render_invocation(accepted, mask);
    let sandbox = render_sandbox(accepted, mask);
    let sandbox = sandbox.map_or_else(String::new, |sandbox| format!("\n{sandbox}"));
    format!(
        "Approve {tool} ({effect}){agent}?\ninput: {input}\nruns: {runs}{sandbox}",
        tool = shown(&accepted.tool.name),
        effect = accepted.tool.effect.name(),
        input = shown(accepted.input.text()),
        runs = runs
            .as_deref()
            .unwrap_or("nothing: the tool has no backing"),
    )
}

/// Reads what a person said. Only `approve: true` is a yes.
pub(crate) fn to_approval(reply: ElicitationReply, client_name: Option<String>) -> ApprovalReply {
    let form = match reply {
        ElicitationReply::Accepted(form) => form,
        ElicitationReply::Declined => Map::new(),
        ElicitationReply::Canceled => return ApprovalReply::Unavailable,
    };
    let reason = form.get("reason").and_then(Value::as_str).map(str::trim);
    ApprovalReply::Decided(Approval {
        decision: match form.get("approve") {
            Some(Value::Bool(true)) => ApprovalDecision::Yes,
            _ => ApprovalDecision::No,
        },
        means: ApprovalMeans::Client(client_name.map(Into::into)),
        reason: reason
            .filter(|reason| !reason.is_empty())
            .map(|reason| truncate(reason, MAX_REASON_CHARS)),
        user: None,
    })
}

// The questions in the results of calls, until clients make the calls again with what people said.

/// How many questions may be without an answer. Clients often never come back.
const MAX_QUESTIONS: usize = 1024;

/// The questions, by the states of their results. Each is answered once.
#[derive(Default)]
pub(crate) struct CallReviews(HashMap<String, AskedQuestion>);

struct AskedQuestion {
    identity: ClientIdentity,
    digest: QuestionDigest,
    asked_at: Instant,
}

/// What a person replied to a question.
#[derive(Debug, Clone)]
pub(crate) struct CallReview {
    /// The digest of the question.
    pub(crate) digest: QuestionDigest,
    /// The person's reply.
    pub(crate) reply: ElicitationReply,
}

impl CallReviews {
    /// Adds a question that is sent to a client `now`. Returns its state, which can't be guessed, or `None` if the system
    /// has no random numbers.
    pub(crate) fn add(
        &mut self,
        identity: ClientIdentity,
        digest: QuestionDigest,
        now: Instant,
    ) -> Option<String> {
        let state = new_random_id()?;
        self.0.retain(|_, question| !question.is_over(now));
        if self.0.len() >= MAX_QUESTIONS {
            let oldest = self.0.iter().min_by_key(|(_, question)| question.asked_at);
            let oldest = oldest.map(|(state, _)| state.clone());
            oldest.and_then(|state| self.0.remove(&state));
        }
        let question = AskedQuestion {
            identity,
            digest,
            asked_at: now,
        };
        self.0.insert(state.clone(), question);
        Some(state)
    }

    /// Returns the person's reply to a question that was sent to this client and hasn't expired by `now`. A question is
    /// removed with its reply, so that the reply counts once.
    pub(crate) fn take(
        &mut self,
        response: InputResponse,
        identity: &ClientIdentity,
        now: Instant,
    ) -> Option<CallReview> {
        let question = self.0.get(&response.state)?;
        if question.identity != *identity || question.is_over(now) {
            return None;
        }
        let question = self.0.remove(&response.state)?;
        Some(CallReview {
            digest: question.digest,
            reply: response.reply,
        })
    }
}

impl AskedQuestion {
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.asked_at) >= QUESTION_TIMEOUT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(state: &str) -> InputResponse {
        InputResponse {
            state: state.to_owned(),
            reply: ElicitationReply::Declined,
        }
    }

    #[test]
    fn a_review_counts_once_in_time_and_for_the_client_that_was_asked() {
        let (mut reviews, now) = (CallReviews::default(), Instant::now());
        let digest = QuestionDigest::of_text("pay?");
        let other = ClientIdentity::Session("s".to_owned());
        let add = |reviews: &mut CallReviews| reviews.add(ClientIdentity::Pipe, digest, now);
        let first = add(&mut reviews).unwrap();
        assert!(reviews.take(response(&first), &other, now).is_none());
        assert!(
            reviews
                .take(response("0"), &ClientIdentity::Pipe, now)
                .is_none()
        );
        let taken = reviews.take(response(&first), &ClientIdentity::Pipe, now);
        assert_eq!(taken.unwrap().digest, digest);
        assert!(
            reviews
                .take(response(&first), &ClientIdentity::Pipe, now)
                .is_none()
        );
        let second = add(&mut reviews).unwrap();
        let late = now + QUESTION_TIMEOUT;
        assert!(
            reviews
                .take(response(&second), &ClientIdentity::Pipe, late)
                .is_none()
        );
    }

    #[test]
    fn the_oldest_question_makes_room() {
        let (mut reviews, now) = (CallReviews::default(), Instant::now());
        let digest = QuestionDigest::of_text("pay?");
        let at = |seconds| now + Duration::from_secs(seconds);
        let mut states = (0..=MAX_QUESTIONS as u64)
            .map(|second| {
                reviews
                    .add(ClientIdentity::Pipe, digest, at(second))
                    .unwrap()
            })
            .collect::<Vec<_>>();
        let last = states.pop().unwrap();
        let later = at(MAX_QUESTIONS as u64);
        assert!(
            reviews
                .take(response(&states[0]), &ClientIdentity::Pipe, later)
                .is_none()
        );
        assert!(
            reviews
                .take(response(&last), &ClientIdentity::Pipe, later)
                .is_some()
        );
    }
}
