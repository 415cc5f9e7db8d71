//! The turns that the host waits for, and the approvals that they wait for.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::commands::run::control::message::{
    HostDecision, LineId, answer_line, approval_line, error_line,
};
use crate::output::BackgroundWriter;
use redact::Mask;
use toolq_core::answer::render_answers;
use toolq_core::plan::render_approval_question;
use toolq_core::types::{
    AnswerForm, Approval, ApprovalDecision, ApprovalMeans, ApprovalRequest, CallAnswer, CallRef,
    CheckedCall, ToolsChange, TurnOrigin,
};
use toolq_engine::{
    ApprovalFuture, ApprovalPrompt, ApprovalReply, ConversationOutputs, TurnRequest,
};

/// How many turns may be in flight at once. Each holds its message.
const MAX_OPEN_TURNS: usize = 1024;

/// The turns in flight. As an [`ApprovalPrompt`], it also asks the host for approvals.
#[derive(Default, derive_more::Debug)]
#[debug("OpenTurns")]
pub(crate) struct OpenTurns {
    /// All turns of a host are one conversation.
    outputs: ConversationOutputs,
    connection: OnceLock<HostConnection>,
    table: Mutex<TurnTable>,
}

/// Where lines to the host are written, and what is masked in them.
struct HostConnection {
    output: BackgroundWriter,
    mask: Arc<Mask>,
}

impl OpenTurns {
    /// Connects the host and the engine.
    pub(super) fn connect(
        &self,
        output: BackgroundWriter,
        mask: Arc<Mask>,
        requests: mpsc::UnboundedSender<TurnRequest>,
    ) {
        // There is one session.
        let _ = self.connection.set(HostConnection { output, mask });
        self.table.lock().requests = Some(requests);
    }

    /// Returns the number of the next turn.
    ///
    /// # Errors
    /// Why there can't be another one with this id.
    pub(super) fn next_number(&self, id: &LineId) -> Result<usize, String> {
        let mut table = self.table.lock();
        if table.turns.values().any(|turn| turn.id == *id) {
            return Err("a turn with this `id` hasn't been answered yet".to_owned());
        }
        if table.turns.len() >= MAX_OPEN_TURNS {
            return Err(format!(
                "{MAX_OPEN_TURNS} turns are in flight; wait for an answer"
            ));
        }
        let number = table.next_number;
        table.next_number += 1;
        Ok(number)
    }

    /// Passes the checked calls of a turn to the engine.
    pub(super) fn begin(
        &self,
        id: LineId,
        number: usize,
        form: AnswerForm,
        calls: Vec<CheckedCall>,
        origin: TurnOrigin,
    ) {
        if calls.is_empty() {
            return self.send(answer_line(&id, "[]"));
        }
        let turn = OpenTurn::new(id, form, calls.len());
        let mut table = self.table.lock();
        table.turns.insert(number, turn);
        table.request(TurnRequest::Run {
            number,
            calls,
            origin,
            outputs: Some(self.outputs.clone()),
        });
    }

    /// Stops a turn. Its calls are answered all the same.
    ///
    /// # Errors
    /// No such turn is in flight.
    pub(super) fn cancel(&self, id: &LineId) -> Result<(), String> {
        let table = self.table.lock();
        let number = table.number_of(id)?;
        table.request(TurnRequest::Cancel(number));
        Ok(())
    }

    /// Passes the host's decision on.
    ///
    /// # Errors
    /// The question doesn't wait for one.
    pub(super) fn decide(
        &self,
        id: &LineId,
        number_of_question: u64,
        decision: HostDecision,
        reason: Option<String>,
    ) -> Result<(), String> {
        let mut table = self.table.lock();
        let number = table.number_of(id)?;
        let question = table.turns.get_mut(&number).and_then(|turn| {
            turn.question
                .take_if(|question| question.number == number_of_question)
        });
        let Some(question) = question else {
            return Err(format!(
                "the question {number_of_question} of this turn doesn't wait for an answer"
            ));
        };
        let decided = |decision| {
            ApprovalReply::Decided(Approval {
                decision,
                means: ApprovalMeans::Control,
                reason: reason.filter(|reason| !reason.is_empty()),
                user: None,
            })
        };
        // If the question was withdrawn, nothing awaits the reply.
        let _ = question.reply.send(match decision {
            HostDecision::Yes => decided(ApprovalDecision::Yes),
            HostDecision::No => decided(ApprovalDecision::No),
            HostDecision::Later => ApprovalReply::Unavailable,
        });
        Ok(())
    }

    /// Takes no more turns and no more decisions.
    pub(super) fn close(&self) {
        let mut table = self.table.lock();
        table.requests = None;
        for turn in table.turns.values_mut() {
            turn.question = None;
        }
    }

    /// Adds the answer of a call. Returns whether it was the last one, so that the turn is answered now.
    pub(super) fn answer(&self, call: &CallRef, answer: CallAnswer) -> bool {
        let mut table = self.table.lock();
        let Some(turn) = table.turns.get_mut(&call.turn) else {
            return false;
        };
        turn.answers.push(answer);
        if turn.answers.len() < turn.call_count {
            return false;
        }
        let turn = table.turns.remove(&call.turn);
        drop(table);
        if let Some(turn) = turn {
            let message = render_answers(turn.form, &turn.answers);
            self.send(answer_line(&turn.id, &message));
        }
        true
    }

    /// Tells the host what was wrong with a line.
    pub(super) fn refuse(&self, id: Option<&LineId>, message: &str) {
        let masked = self.connection.get().map(|to| to.mask.apply(message));
        self.send(error_line(id, masked.as_deref().unwrap_or(message)));
    }

    /// Returns the id that the host gave a turn in flight.
    pub(super) fn id_of(&self, number: usize) -> Option<LineId> {
        let table = self.table.lock();
        table.turns.get(&number).map(|turn| turn.id.clone())
    }

    /// Runs the turns that come from now on with other definitions.
    pub(super) fn change_tools(&self, change: ToolsChange) {
        let request = TurnRequest::ChangeTools(Box::new(change));
        self.table.lock().request(request);
    }

    /// Sends a line to the host.
    pub(super) fn send(&self, line: String) {
        if let Some(connection) = self.connection.get() {
            connection.output.send(line.into_bytes());
        }
    }

    async fn ask_host(&self, request: &ApprovalRequest) -> ApprovalReply {
        let number = request.call.outermost().turn;
        let may_ask = self
            .table
            .lock()
            .turns
            .get(&number)
            .map(|turn| Arc::clone(&turn.may_ask));
        let Some(may_ask) = may_ask else {
            return ApprovalReply::Unavailable;
        };
        let _one_at_a_time = may_ask.lock_owned().await;
        let Some(connection) = self.connection.get() else {
            return ApprovalReply::Unavailable;
        };
        let question = match render_approval_question(request, &connection.mask) {
            Ok(question) => question,
            Err(error) => {
                return ApprovalReply::Stopped(format!("the question can't be written: {error}"));
            }
        };
        let Some((id, asked, decision)) = self.table.lock().wait_for_decision(number) else {
            return ApprovalReply::Unavailable;
        };
        self.send(approval_line(&id, asked, &question));
        // Once the host is gone, no decision can arrive.
        decision.await.unwrap_or(ApprovalReply::Unavailable)
    }
}

impl ApprovalPrompt for OpenTurns {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> ApprovalFuture<'a> {
        Box::pin(self.ask_host(request))
    }
}

// The turns in flight, by their numbers, with the approval question that each may wait for.

#[derive(Default)]
struct TurnTable {
    turns: HashMap<usize, OpenTurn>,
    next_number: usize,
    /// The number of questions so far. A question that was withdrawn must not be taken for the next one.
    questions: u64,
    /// `None` once no more turns are taken.
    requests: Option<mpsc::UnboundedSender<TurnRequest>>,
}

struct OpenTurn {
    id: LineId,
    form: AnswerForm,
    call_count: usize,
    answers: Vec<CallAnswer>,
    /// Held from a question to its reply, so that people read one at a time.
    may_ask: Arc<tokio::sync::Mutex<()>>,
    question: Option<Question>,
}

/// A pending approval question to the host about a call.
struct Question {
    number: u64,
    reply: oneshot::Sender<ApprovalReply>,
}

impl OpenTurn {
    pub(crate) fn new(id: LineId, form: AnswerForm, call_count: usize) -> Self {
        Self {
            id,
            form,
            call_count,
            answers: Vec::new(),
            may_ask: Arc::default(),
            question: None,
        }
    }
}

impl TurnTable {
    /// Waits for the decision about a call of a turn from now on. Returns the id of the turn and the number of the question.
    fn wait_for_decision(
        &mut self,
        number: usize,
    ) -> Option<(LineId, u64, oneshot::Receiver<ApprovalReply>)> {
        self.requests.as_ref()?;
        let turn = self.turns.get_mut(&number)?;
        let (reply, decision) = oneshot::channel();
        self.questions += 1;
        turn.question = Some(Question {
            number: self.questions,
            reply,
        });
        Some((turn.id.clone(), self.questions, decision))
    }

    fn number_of(&self, id: &LineId) -> Result<usize, String> {
        let mut turns = self.turns.iter();
        turns
            .find(|(_, turn)| turn.id == *id)
            .map(|(number, _)| *number)
            .ok_or_else(|| "no turn with this `id` is in flight".to_owned())
    }

    pub(crate) fn request(&self, request: TurnRequest) {
        if let Some(requests) = &self.requests {
            // The receiver is only gone once the run has ended.
            let _ = requests.send(request);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl OpenTurns {
        /// Returns a table with one turn in flight. What the engine is asked to do goes to `requests`.
        pub(in super::super) fn with_turn(
            number: usize,
            id: LineId,
            requests: mpsc::UnboundedSender<TurnRequest>,
        ) -> Self {
            let turns = Self::default();
            let mut table = turns.table.lock();
            table
                .turns
                .insert(number, OpenTurn::new(id, AnswerForm::Blocks, 1));
            table.requests = Some(requests);
            drop(table);
            turns
        }
    }
}
