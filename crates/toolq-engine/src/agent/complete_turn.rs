//! Runs the calls of a response that has arrived as a whole.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tokio::sync::mpsc;

use crate::agent::conversation::AgentConversation;
use crate::dispatcher::SubTurnAnswers;
use toolq_core::types::{CheckedCall, NotExecutedCause, Turn, TurnArrival, Verdict};

/// The answers to the calls of a response.
#[derive(Default)]
pub(crate) struct AgentTurnResult {
    pub(crate) answers: SubTurnAnswers,
    /// The positions of the calls that would give the agent's final answer, in call order.
    pub(crate) completion_positions: Vec<usize>,
}

impl AgentConversation<'_> {
    /// Returns whether the model gets no further request after the turn with this number.
    pub(crate) fn is_last_turn(&self, turn_number: usize) -> bool {
        turn_number + 1 == self.backing.max_turns as usize
    }

    /// Runs the calls of a turn that are all known. In the last turn only those that give the agent's final answer run.
    pub(crate) async fn run_complete_turn(&self, turn: Turn) -> AgentTurnResult {
        let (turn_number, origin) = (turn.number, turn.origin.clone());
        let mut calls = self.toolset.check_turn(turn, &self.scope);
        for checked in &mut calls {
            checked.call.parent = Some(Arc::clone(&self.dispatcher.call));
        }
        let accepted = |checked: &CheckedCall| matches!(checked.verdict, Verdict::Accepted(_));
        self.dispatcher
            .any_call_started()
            .fetch_or(calls.iter().any(accepted), Relaxed);
        let completion_calls = calls.iter().filter(|call| call.verdict.is_completion());
        let completion_positions: Vec<usize> = completion_calls
            .map(|checked| checked.call.position)
            .collect();
        let (sender, arrivals) = mpsc::unbounded_channel();
        if self.is_last_turn(turn_number) {
            if completion_positions.is_empty() {
                return AgentTurnResult::default();
            }
            // This function still holds the receiver, so sending can't fail.
            let _ = sender.send(TurnArrival::RestSkipped(NotExecutedCause::LastTurn));
        }
        for call in calls {
            let _ = sender.send(TurnArrival::Call(Box::new(call)));
        }
        drop(sender);
        let tools = Arc::clone(&self.toolset.tools);
        let scope = Arc::clone(&self.scope);
        let answers = self
            .dispatcher
            .run_sub_turn((turn_number, origin), arrivals, tools, scope)
            .await;
        AgentTurnResult {
            answers: answers.unwrap_or_default(),
            completion_positions,
        }
    }
}
