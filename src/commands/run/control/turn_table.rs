//! The turns in flight, by their numbers, with the approval question that each may wait for.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::commands::run::control::message::LineId;
use toolq_core::types::{AnswerForm, CallAnswer};
use toolq_engine::{ApprovalReply, TurnRequest};

#[derive(Default)]
pub(super) struct TurnTable {
    pub(super) turns: HashMap<usize, OpenTurn>,
    pub(super) next_number: usize,
    /// `None` once no more turns are taken.
    pub(super) requests: Option<mpsc::UnboundedSender<TurnRequest>>,
}

pub(super) struct OpenTurn {
    pub(super) id: LineId,
    pub(super) form: AnswerForm,
    pub(super) call_count: usize,
    pub(super) answers: Vec<CallAnswer>,
    /// Held from a question to its reply: a reply names a call by its id, and agents may repeat ids.
    pub(super) may_ask: Arc<tokio::sync::Mutex<()>>,
    pub(super) question: Option<Question>,
}

/// A pending approval question to the host about a call.
pub(super) struct Question {
    pub(super) tool_use_id: String,
    pub(super) reply: oneshot::Sender<ApprovalReply>,
}

impl OpenTurn {
    pub(super) fn new(id: LineId, form: AnswerForm, call_count: usize) -> Self {
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
    /// Waits for the decision about a call of a turn from now on. Returns the id of the turn.
    pub(super) fn wait_for_decision(
        &mut self,
        number: usize,
        tool_use_id: &str,
    ) -> Option<(LineId, oneshot::Receiver<ApprovalReply>)> {
        self.requests.as_ref()?;
        let turn = self.turns.get_mut(&number)?;
        let (reply, decision) = oneshot::channel();
        turn.question = Some(Question {
            tool_use_id: tool_use_id.to_owned(),
            reply,
        });
        Some((turn.id.clone(), decision))
    }

    pub(super) fn number_of(&self, id: &LineId) -> Result<usize, String> {
        let mut turns = self.turns.iter();
        turns
            .find(|(_, turn)| turn.id == *id)
            .map(|(number, _)| *number)
            .ok_or_else(|| "no turn with this `id` is in flight".to_owned())
    }

    pub(super) fn request(&self, request: TurnRequest) {
        if let Some(requests) = &self.requests {
            // The receiver is only gone once the run has ended.
            let _ = requests.send(request);
        }
    }
}
