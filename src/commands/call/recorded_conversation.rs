//! Restores the conversation of an agent whose answer comes from the log. The agent works through its turns once more, but
//! with nothing except what the log has: at the first step that would ask its model or start a call, it ends.

use std::sync::{Arc, Mutex, PoisonError};

use crate::commands::call::session::answer_text;
use crate::commands::call::transcript::AgentTranscript;
use crate::session::RunSession;
use toolq_core::types::{
    AgentHistory, CallAnswer, CallRef, CheckedCall, EmitError, Event, EventSink, LoggedResponse,
    PriorAttempts, ReportedUsage, ResumeState,
};
use toolq_engine::AnswerDelivery;

/// Adds the recorded conversation of the agent that `checked` calls to `transcript`. Warns if it can't be restored.
pub(super) async fn restore_conversation(
    session: &RunSession<'_>,
    checked: CheckedCall,
    transcript: &mut AgentTranscript,
) {
    let Some(history) = session.agent_history() else {
        return;
    };
    let recorded = Arc::new(RecordedSteps {
        history,
        refusal: Mutex::new(None),
    });
    let history: Arc<dyn AgentHistory> = Arc::clone(&recorded) as Arc<_>;
    let mut engine = session.engine_with_history(history);
    let resume_state = ResumeState::Started(Box::new(PriorAttempts {
        count: 1,
        idempotency_key: None,
        has_nested_doubt: false,
    }));
    let call = CheckedCall {
        resume_state,
        ..checked
    };
    let mut last_text = LastText::default();
    let mut sink = ConversationSink(transcript);
    engine
        .run_turn(0, vec![call], &mut sink, &mut last_text)
        .await;
    engine.close();
    let refusal = recorded.refusal.lock();
    let refusal = refusal.unwrap_or_else(PoisonError::into_inner).take();
    let is_missing = transcript.conversation.is_empty();
    if let Some(why) = refusal.or_else(|| is_missing.then_some(last_text.0)) {
        let warning = format!("the log's conversation can't be restored completely: {why}");
        session.context.stderr.print_warning(&warning);
    }
}

/// A history with nothing beyond its end: where it has no response or result, the agent ends.
#[derive(Debug)]
struct RecordedSteps {
    history: Arc<dyn AgentHistory>,
    /// Why the history couldn't return something that it has.
    refusal: Mutex<Option<String>>,
}

impl RecordedSteps {
    fn refuse(&self, error: EmitError) -> EmitError {
        let mut refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
        refusal.get_or_insert_with(|| error.0.clone());
        error
    }

    fn end() -> EmitError {
        EmitError("the log has no further step of this agent".to_owned())
    }
}

impl AgentHistory for RecordedSteps {
    fn resume_state(&self, checked: &CheckedCall) -> Result<ResumeState, EmitError> {
        let state = self.history.resume_state(checked);
        match state.map_err(|error| self.refuse(error))? {
            answered @ ResumeState::Answered(_) => Ok(answered),
            _ => Err(Self::end()),
        }
    }

    fn logged_response(
        &self,
        call: &CallRef,
        turn: usize,
    ) -> Result<Option<LoggedResponse>, EmitError> {
        let response = self.history.logged_response(call, turn);
        let response = response.map_err(|error| self.refuse(error))?;
        response.map(Some).ok_or_else(Self::end)
    }

    fn logged_usage(&self, call: &CallRef) -> Vec<(String, ReportedUsage)> {
        self.history.logged_usage(call)
    }
}

/// Keeps only the messages of the conversation.
struct ConversationSink<'t>(&'t mut AgentTranscript);

impl EventSink for ConversationSink<'_> {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        for event in events {
            if let Event::AgentMessage { call, message, .. } = event {
                self.0.record_message(call, message);
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), EmitError> {
        Ok(())
    }
}

/// Keeps the text with which the agent ended.
#[derive(Default)]
struct LastText(String);

impl AnswerDelivery for LastText {
    fn deliver(&mut self, _: &Arc<CallRef>, answer: CallAnswer, _: &mut dyn EventSink) {
        self.0 = answer_text(&answer);
    }

    fn finish_turn(&mut self, _: &mut dyn EventSink) {}
}
