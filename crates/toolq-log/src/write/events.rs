//! Turns events into records.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::memory::MemoryStore;
use crate::records::{
    AttemptStart, CallEndStats, ListRecord, ModelResponseRecord, RecordKind, ServerEndRecord,
    ServerStartRecord, TurnRecord,
};
use crate::write::journal::Place;
use crate::write::session_log::{OpenCall, OpenTurn, Recorder, SessionLog};
use toolq_core::types::{
    CallRef, EmitError, Event, EventSink, MaskedJson, ModelResponse, ServerEnd, ServerStart,
    TurnOrigin, UnlockedServer,
};

impl EventSink for SessionLog {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        let mut recorder = self.recorder();
        recorder.write_guarded(|recorder| {
            for event in events {
                recorder.record_event(self.memory(), event)?;
            }
            if events.iter().any(is_start_event) {
                recorder.journal.check_file()?;
            }
            recorder.journal.write()
        })
    }
}

/// Returns whether the event announces that something is about to run.
fn is_start_event(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::Started { .. } | Event::Describing { .. } | Event::ListingTools { .. }
    )
}

impl Recorder {
    /// Runs `write` unless an earlier write failed. Nothing is attempted after the first failure.
    pub(crate) fn write_guarded(
        &mut self,
        write: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> Result<(), EmitError> {
        if let Some(failure) = self.journal.failure() {
            return Err(failure.clone());
        }
        let written = write(self);
        self.journal.guard(|| written)
    }

    fn record_event(&mut self, memory: &MemoryStore, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::TurnStarted {
                turn,
                parent,
                origin,
            } => self.record_turn(*turn, *parent, origin)?,
            Event::Queued { checked, batch } => self.record_call(memory, checked, *batch)?,
            Event::ApprovalDecided { call, approval } => self.record_approval(call, approval)?,
            Event::Started {
                call,
                accepted,
                attempt,
                idempotency_key,
                claim,
                waited,
            } => {
                let start = AttemptStart {
                    attempt: *attempt,
                    idempotency_key,
                    claim: *claim,
                    waited: *waited,
                };
                self.record_start(memory, call, accepted, start)?;
            }
            Event::Retrying {
                call,
                outcome,
                wait,
                ..
            } => self.record_retry(call, outcome, *wait),
            Event::Finished {
                call,
                outcome,
                answer,
                duration,
                attempts,
                agent_usage,
                claim: _,
                request: _,
            } => {
                let stats = CallEndStats {
                    duration: *duration,
                    attempts: *attempts,
                    agent_usage: *agent_usage,
                };
                self.record_result(memory, call, outcome, answer, stats)?;
            }
            Event::AgentMessage {
                call,
                response: Some(response),
                turn,
                ..
            } => self.record_response(call, *turn, response)?,
            Event::QueueDrained { turn } => drop(self.open_turns.remove(&(*turn, None))),
            Event::Probing { call } => self.record_probe_start(call)?,
            Event::Probed {
                call,
                finding,
                outcome,
                duration,
            } => self.record_probe_end(call, *finding, outcome, *duration)?,
            event => self.record_event_beside_calls(event)?,
        }
        Ok(())
    }

    /// Records what happens to servers and definitions. Other events leave no record.
    fn record_event_beside_calls(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Describing { tool } => self.record_describe_start(tool)?,
            Event::Described {
                tool,
                outcome,
                duration,
                attempts,
            } => self.record_describe_end(tool, outcome, *duration, *attempts)?,
            Event::ListingTools { server } => self.record_list_start(server)?,
            Event::ToolsListed { server, duration } => self.record_list_end(server, *duration)?,
            Event::ServerStarted(start) => self.record_server_start(start)?,
            Event::ServerEnded(end) => self.record_server_end(end)?,
            Event::LateResult {
                call,
                text,
                is_error,
            } => self.record_late_result(call, text, *is_error)?,
            Event::ToolsChanged(change) => self.record_tools_change(change)?,
            _ => {}
        }
        Ok(())
    }
}

// Records of servers: a `server_start` below the session, and below that a `server_end`; the same for `list_start` and
// `list_end`.

impl Recorder {
    fn record_list_start(&mut self, server: &UnlockedServer) -> io::Result<()> {
        let session = Some(self.session_id);
        let fields = ListRecord::start(server, &self.mask);
        let kind = RecordKind::ListStart;
        let start_id = self.journal.append(kind, session, (&(), &fields), false)?.0;
        self.open_lists.insert(server.server.name.clone(), start_id);
        Ok(())
    }

    fn record_list_end(&mut self, server: &UnlockedServer, duration: Duration) -> io::Result<()> {
        let start_id = self.open_lists.remove(&server.server.name);
        let fields = ListRecord::end(server, duration, &self.mask);
        let kind = RecordKind::ListEnd;
        self.journal.append(kind, start_id, (&(), &fields), false)?;
        Ok(())
    }

    fn record_server_start(&mut self, start: &ServerStart) -> io::Result<()> {
        let session = Some(self.session_id);
        let fields = ServerStartRecord::new(start, &self.mask);
        let kind = RecordKind::ServerStart;
        let start_id = self.journal.append(kind, session, (&(), &fields), false)?.0;
        let started = (start.server.clone(), start.earlier_starts);
        self.open_servers.insert(started, start_id);
        Ok(())
    }

    fn record_server_end(&mut self, end: &ServerEnd) -> io::Result<()> {
        let started = (end.server.clone(), end.earlier_starts);
        let Some(start_id) = self.open_servers.remove(&started) else {
            return Ok(());
        };
        let fields = ServerEndRecord::new(end, &self.mask);
        let kind = RecordKind::ServerEnd;
        self.journal
            .append(kind, Some(start_id), (&(), &fields), false)?;
        Ok(())
    }
}

// Records of turns, and of the responses that agents get from models.

impl Recorder {
    /// Records a turn of the input or of an agent; the latter goes below the call that the agent works on.
    fn record_turn(
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
    fn record_response(
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
