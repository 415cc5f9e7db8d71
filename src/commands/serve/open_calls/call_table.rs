//! The calls without an answer: how many there may be, and how far each is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;
use toolq_mcp::CallToolResult;
use toolq_mcp::server::{Elicitation, ElicitationForm, InputResponse, ServedCallId};

use crate::commands::serve::answer_content::{StructuredSource, refusal};
use crate::commands::serve::call_progress::CallProgress;
use crate::commands::serve::call_reviews::{CallReview, CallReviews};
use crate::commands::serve::served_client::{ReplyChannel, ServedClient};
use toolq_engine::TurnRequest;

/// How many calls of all clients may be open at once. Each holds its arguments.
const MAX_OPEN_CALLS: usize = 1024;

/// The open calls by the numbers of their turns, and the way of new ones to the engine.
pub(super) struct CallTable {
    pub(super) calls: HashMap<usize, ServedCall>,
    pub(super) next_turn: usize,
    pub(super) reviews: CallReviews,
    /// `None` once no more calls are taken.
    pub(super) turns: Option<mpsc::UnboundedSender<TurnRequest>>,
}

/// A call without an answer.
pub(super) struct ServedCall {
    pub(super) client: Arc<ServedClient>,
    pub(super) id: ServedCallId,
    pub(super) reply: Arc<dyn ReplyChannel>,
    pub(super) wants_progress: bool,
    pub(super) structured: StructuredSource,
    pub(super) progress: CallProgress,
    pub(super) client_name: Option<String>,
    /// How the person at the client can be asked, if at all.
    pub(super) form: Option<ElicitationForm>,
    /// What the person said when the client made this call before.
    pub(super) review: Option<CallReview>,
    /// What the call is answered with instead of its result, and the state that comes back with the reply.
    pub(super) question: Option<(Elicitation, String)>,
}

/// A message about how far a call is.
pub(super) struct ProgressReport {
    client: Arc<ServedClient>,
    id: ServedCallId,
    reply: Arc<dyn ReplyChannel>,
    numbers: (f64, Option<f64>),
}

impl CallTable {
    pub(super) fn new(turns: mpsc::UnboundedSender<TurnRequest>) -> Self {
        Self {
            calls: HashMap::new(),
            next_turn: 0,
            reviews: CallReviews::default(),
            turns: Some(turns),
        }
    }

    /// Gives a call the number of its turn.
    ///
    /// # Errors
    /// The answer to a call beyond what the client, or all of them, may have.
    pub(super) fn insert(
        &mut self,
        mut call: ServedCall,
        response: Option<InputResponse>,
    ) -> Result<usize, CallToolResult> {
        if self.turns.is_none() {
            return Err(ending());
        }
        let identity = &call.client.identity;
        let most = identity.max_open_calls();
        let calls = self.calls.values();
        if calls
            .filter(|open| open.client.identity == *identity)
            .count()
            >= most
        {
            let text = format!("Not executed: {most} calls are open. Wait for one of them.");
            return Err(refusal(text));
        }
        if self.calls.len() >= MAX_OPEN_CALLS {
            let text = format!(
                "Not executed: {MAX_OPEN_CALLS} calls of all clients are open. Try again later."
            );
            return Err(refusal(text));
        }
        call.review =
            response.and_then(|response| self.reviews.take(response, identity, Instant::now()));
        let turn = self.next_turn;
        self.next_turn += 1;
        self.calls.insert(turn, call);
        Ok(turn)
    }

    pub(super) fn send(&self, request: TurnRequest) {
        if let Some(turns) = &self.turns {
            // The receiver is only gone once the run has ended.
            let _ = turns.send(request);
        }
    }
}

impl ServedCall {
    /// Returns the next message about how far the call is, if the client wants it and reads what it gets.
    pub(super) fn advance(&mut self, fraction: Option<f64>) -> Option<ProgressReport> {
        (self.wants_progress && !self.reply.is_full()).then(|| ProgressReport {
            client: Arc::clone(&self.client),
            id: self.id,
            reply: Arc::clone(&self.reply),
            numbers: self.progress.advance(fraction),
        })
    }
}

impl ProgressReport {
    pub(super) fn send(self, message: Option<&str>) {
        let lines = self.client.report_progress(self.id, self.numbers, message);
        if !lines.is_empty() {
            self.reply.send(lines);
        }
    }
}

/// The answer to a call that comes when the server is about to end.
pub(super) fn ending() -> CallToolResult {
    refusal("Not executed: the server is ending.".to_owned())
}
