//! What the server tells the client about a call: its answer, questions, and how far it is.

use crate::call_result::CallToolResult;
use crate::rpc_error::RpcError;
use crate::server::elicitation::{ELICITATION_METHOD, Elicitation, QuestionId};
use crate::server::event::ServedCallId;
use crate::server::result::{CallToolAnswer, InputRequiredResult, ProgressParams, WithdrawnParams};
use crate::server::session::ServerSession;

impl ServerSession {
    /// Answers a call. It's not an error if the call was canceled meanwhile: it gets no answer then.
    pub fn answer_call(&mut self, call: ServedCallId, result: &CallToolResult) {
        if let Some(running) = self.running.remove(&call) {
            let catalog = self.catalog.current();
            let answer = CallToolAnswer::new(running.version, &catalog, result);
            self.outbox.result(&running.request, answer);
        }
    }

    /// Asks the person at the client of a call by a request. Returns `None` if the call is over.
    pub fn ask(&mut self, call: ServedCallId, question: &Elicitation) -> Option<QuestionId> {
        self.running.get(&call)?;
        let id = QuestionId(self.next_question);
        self.next_question += 1;
        self.questions.insert(id);
        self.outbox.request(id.0, ELICITATION_METHOD, question);
        Some(id)
    }

    /// Takes back a question without an answer. Nothing happens if it has one.
    pub fn withdraw_question(&mut self, question: QuestionId) {
        if self.questions.remove(&question) {
            let params = WithdrawnParams {
                request_id: question.0,
            };
            self.outbox
                .notification("notifications/cancelled", Some(params));
        }
    }

    /// Answers a call with a question. The client makes the call again with the reply, and with `state`.
    pub fn require_input(&mut self, call: ServedCallId, question: &Elicitation, state: &str) {
        if let Some(running) = self.running.remove(&call) {
            let catalog = self.catalog.current();
            let result = InputRequiredResult::new(&catalog, question, state);
            self.outbox.result(&running.request, result);
        }
    }

    /// Answers a call that can't be made at all.
    pub fn refuse_call(&mut self, call: ServedCallId, error: RpcError) {
        if let Some(running) = self.running.remove(&call) {
            let error = error.masked(&self.mask);
            self.outbox.error(Some(&running.request), error);
        }
    }

    /// Says how far a call is, if the client wants to know and it has come further.
    pub fn report_progress(
        &mut self,
        call: ServedCallId,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
    ) {
        let Some(running) = self.running.get_mut(&call) else {
            return;
        };
        let Some(progress_token) = &running.progress_token else {
            return;
        };
        if running.progress.is_some_and(|last| progress <= last) {
            return;
        }
        running.progress = Some(progress);
        let params = ProgressParams {
            progress_token,
            progress,
            total,
            message,
        };
        self.outbox
            .notification("notifications/progress", Some(params));
    }
}
