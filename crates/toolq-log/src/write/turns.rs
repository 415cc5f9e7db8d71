//! Records of turns, and of the responses that agents get from models.

use std::io;
use std::sync::Arc;

use crate::records::{ModelResponseRecord, RecordKind, TurnRecord};
use crate::write::session_log::SessionLog;
use toolq_core::types::{CallRef, MaskedJson, ModelResponse, TurnOrigin};

impl SessionLog {
    /// Records a turn of the input or of an agent; the latter goes below the call that the agent works on. A turn of the
    /// input that an earlier run has recorded isn't recorded again.
    pub(crate) fn record_turn(
        &mut self,
        turn: usize,
        parent: Option<&Arc<CallRef>>,
        origin: &TurnOrigin,
    ) -> io::Result<()> {
        let key = (turn, parent.cloned());
        let agent_call_id =
            parent.map(|agent| self.open_calls.get(&agent.key()).map(|open| open.record_id));
        let history = self.history.as_ref().filter(|_| parent.is_none());
        if let Some(record) = history.and_then(|history| history.turn_record(turn)) {
            self.open_turns.insert(key, record);
            return Ok(());
        }
        let agent = parent.map(|agent| &**agent);
        let fields = TurnRecord::new(turn, agent, origin, &self.mask);
        let parent_id = agent_call_id.unwrap_or(Some(self.session_id));
        let record = self
            .journal
            .append(&RecordKind::Turn, parent_id, &(), &fields)?;
        self.open_turns.insert(key, record);
        self.counts.turns += 1;
        Ok(())
    }

    /// Records the response of a model below the call that its agent works on.
    pub(crate) fn record_response(
        &mut self,
        call: &CallRef,
        turn: usize,
        response: &ModelResponse,
    ) -> io::Result<()> {
        let parent = self.open_calls.get(&call.key()).map(|open| open.record_id);
        let content = MaskedJson(&response.body, &self.mask);
        let fields = ModelResponseRecord::new(call, turn, response, &self.mask);
        self.journal
            .append(&RecordKind::ModelResponse, parent, &content, &fields)?;
        Ok(())
    }
}
