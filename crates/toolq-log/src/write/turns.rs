//! Records of turns, and of the responses that agents get from models.

use std::io;
use std::sync::Arc;

use crate::records::{ModelResponseRecord, RecordKind, TurnRecord};
use crate::write::journal::Place;
use crate::write::session_log::{OpenCall, OpenTurn, Recorder};
use toolq_core::types::{CallRef, MaskedJson, ModelResponse, TurnOrigin};

impl Recorder {
    /// Records a turn of the input or of an agent; the latter goes below the call that the agent works on.
    pub(crate) fn record_turn(
        &mut self,
        turn: usize,
        parent: Option<&Arc<CallRef>>,
        origin: &TurnOrigin,
    ) -> io::Result<()> {
        let agent = parent.map(|agent| self.open_calls.get(&agent.key()));
        let detour = agent.flatten().is_some_and(OpenCall::takes_detour);
        let parent_id = match agent {
            Some(agent) => agent.map(|agent| agent.record_id),
            None => Some(self.session_id),
        };
        let fields = TurnRecord::new(turn, parent.map(|agent| &**agent), origin, &self.mask);
        let (record_id, place) =
            self.journal
                .append(RecordKind::Turn, parent_id, (&(), &fields), detour)?;
        let open = OpenTurn {
            record_id,
            origin: origin.clone(),
            detour: matches!(place, Place::WithKeeper(_)),
        };
        self.open_turns.insert((turn, parent.cloned()), open);
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
        let open = self.open_calls.get(&call.key());
        let parent = open.map(|open| open.record_id);
        let detour = open.is_some_and(OpenCall::takes_detour);
        let content = MaskedJson(&response.body, &self.mask);
        let fields = ModelResponseRecord::new(call, turn, response, &self.mask);
        self.journal.append(
            RecordKind::ModelResponse,
            parent,
            (&content, &fields),
            detour,
        )?;
        Ok(())
    }
}
