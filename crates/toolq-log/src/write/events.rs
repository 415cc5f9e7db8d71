//! Turns events into records: a call when it is queued, below its turn, and what happens to it, below the call.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::to_raw_value;

use crate::memory::MemoryStore;
use crate::records::{
    ApprovalRecord, BLOB_REF_PREFIX, CallContent, CallEndRecord, CallRecord, DescribeRecord,
    FailedAttempt, ListRecord, ModelResponseRecord, ProbeRecord, RecordContent, RecordKind,
    ServerEndRecord, ServerStartRecord, StartRecord, ToolsChangeRecord, TurnRecord,
    end_record_kind,
};
use crate::write::journal::Place;
use crate::write::session_log::{OpenCall, OpenTurn, Recorder, SessionLog};
use toolq_core::types::{
    AcceptedCall, AgentUsage, CallAnswer, CallClaim, CallRef, CheckedCall, DescribeResult,
    EmitError, Event, EventSink, MaskedContent, MaskedJson, ModelResponse, Outcome, RecalledCall,
    ServerEnd, ServerStart, Tool, TurnOrigin, UnlockedServer,
};

impl EventSink for SessionLog {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        let mut recorder = self.recorder();
        recorder.write_guarded(|recorder| {
            if events.iter().any(is_start_event) {
                recorder.journal.shared.check_file()?;
            }
            for event in events {
                recorder.record_event(self.memory(), event)?;
            }
            recorder.journal.shared.write()
        })
    }

    fn emit_later(&mut self, event: &Event<'_>) -> Result<(), EmitError> {
        let mut recorder = self.recorder();
        recorder.write_guarded(|recorder| recorder.record_event(self.memory(), event))
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
        if let Some(failure) = self.journal.shared.failure() {
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
            Event::Started {
                call,
                accepted,
                attempt,
                idempotency_key,
                claim,
                waited,
            } => {
                let attempt = (*attempt, *idempotency_key, *waited);
                self.record_start(memory, call, accepted, attempt, *claim)?;
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
                let stats = (*duration, *attempts, *agent_usage);
                self.record_result(memory, call, outcome, answer, stats)?;
            }
            Event::AgentMessage {
                call,
                response: Some(response),
                turn,
                ..
            } => self.record_response(call, *turn, response)?,
            Event::QueueDrained { turn } => drop(self.open_turns.remove(&(*turn, None))),
            event => self.record_event_beside_attempts(event)?,
        }
        Ok(())
    }

    /// Records approvals and probes of calls.
    fn record_event_beside_attempts(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::ApprovalDecided { call, approval } => {
                let fields = ApprovalRecord::new(call, approval, &self.mask);
                self.append_to_call(RecordKind::Approval, call, (&(), &fields))?;
            }
            Event::Probing { call } => {
                let fields = ProbeRecord::new(call, &self.mask);
                self.append_to_call(RecordKind::ProbeStart, call, (&(), &fields))?;
            }
            Event::Probed {
                call,
                finding,
                outcome,
                duration,
            } => {
                let fields = ProbeRecord::new(call, &self.mask);
                let fields = fields.with_finding(*finding, outcome, *duration);
                self.append_to_call(RecordKind::ProbeEnd, call, (&(), &fields))?;
            }
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
            Event::ToolsChanged(change) => {
                let fields = ToolsChangeRecord::new(change, &self.mask);
                self.append_to_session(RecordKind::ToolsChange, &fields)?;
            }
            _ => {}
        }
        Ok(())
    }
}

// Records of servers, and of tools that describe themselves: a `server_start` below the session, and below that a `server_end`; the
// same for `list_start` and `describe_start`.

impl Recorder {
    fn record_list_start(&mut self, server: &UnlockedServer) -> io::Result<()> {
        let fields = ListRecord::start(server, &self.mask);
        self.append_start(RecordKind::ListStart, (&server.server.name, 0), &fields)
    }

    fn record_list_end(&mut self, server: &UnlockedServer, duration: Duration) -> io::Result<()> {
        let kinds = (RecordKind::ListStart, RecordKind::ListEnd);
        let fields = ListRecord::end(server, duration, &self.mask);
        self.append_end(kinds, (&server.server.name, 0), (&(), &fields))
    }

    fn record_server_start(&mut self, start: &ServerStart) -> io::Result<()> {
        let name = (&*start.server, start.earlier_starts);
        let fields = ServerStartRecord::new(start, &self.mask);
        self.append_start(RecordKind::ServerStart, name, &fields)
    }

    fn record_server_end(&mut self, end: &ServerEnd) -> io::Result<()> {
        let kinds = (RecordKind::ServerStart, RecordKind::ServerEnd);
        let name = (&*end.server, end.earlier_starts);
        let fields = ServerEndRecord::new(end, &self.mask);
        self.append_end(kinds, name, (&(), &fields))
    }

    fn record_describe_start(&mut self, tool: &Tool) -> io::Result<()> {
        let fields = DescribeRecord::new(&tool.name, &self.mask);
        self.append_start(RecordKind::DescribeStart, (&tool.name, 0), &fields)
    }

    /// The content is the description that applies to the tool from now on.
    fn record_describe_end(
        &mut self,
        tool: &Tool,
        outcome: &Outcome,
        duration: Duration,
        attempts: u32,
    ) -> io::Result<()> {
        let kinds = (RecordKind::DescribeStart, RecordKind::DescribeEnd);
        let result = tool.describe_result();
        let description = match result {
            Some(DescribeResult::Ok(description)) => Some(to_raw_value(description)?),
            _ => None,
        };
        let mask = Arc::clone(&self.mask);
        let content = description.as_deref().map(|json| MaskedJson(json, &mask));
        let fields = DescribeRecord::new(&tool.name, &mask)
            .with_result(result, outcome, duration, attempts, &mask);
        self.append_end(kinds, (&tool.name, 0), (&content, &fields))
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
        let content = MaskedJson(&response.body, &self.mask);
        let fields = ModelResponseRecord::new(call, turn, response, &self.mask);
        self.append_to_call(RecordKind::ModelResponse, call, (&content, &fields))?;
        Ok(())
    }
}

// Records of calls: a call when it is queued, below its turn, and its result, below the call.

/// Largest input that metadata holds inline, in bytes.
const MAX_INLINE_INPUT_BYTES: usize = 8 << 10;

impl Recorder {
    pub(crate) fn record_call(
        &mut self,
        memory: &MemoryStore,
        checked: &CheckedCall,
        batch: Option<usize>,
    ) -> io::Result<()> {
        let call = CallRef::new(&checked.call, None);
        let turn = self.open_turns.get(&(call.turn, call.parent.clone()));
        let (parent, origin, mut detour) = match turn {
            Some(turn) => (Some(turn.record_id), turn.origin.clone(), turn.detour),
            None => (None, TurnOrigin::default(), false),
        };
        let identity = memory.identify(&RecalledCall {
            call: &checked.call,
            accepted: checked.verdict.accepted(),
            origin: &origin,
        });
        let content = CallContent::new(checked, &self.mask);
        let input_before = CallContent::input_before_coercion(checked, &self.mask);
        let input_before = input_before
            .map(|input| self.inline_or_store(input))
            .transpose()?;
        detour |= matches!(input_before, Some(RecordContent::Stored(_)));
        let fields = CallRecord::new(checked, batch, input_before, identity.as_ref(), &self.mask);
        self.counts.calls += 1;
        let (record_id, place) =
            self.journal
                .append(RecordKind::ToolCall, parent, (&content, &fields), detour)?;
        let open = OpenCall {
            record_id,
            place,
            start: None,
            identity,
            failed_attempt: None,
        };
        self.open_calls.insert(call.key(), open);
        Ok(())
    }

    /// Stores an input in a file if metadata has no room for it, or if it could be mistaken for a reference to a file.
    fn inline_or_store(&self, original: MaskedJson<'_>) -> io::Result<RecordContent<'static>> {
        let text = original.0.get();
        if text.len() <= MAX_INLINE_INPUT_BYTES && !text.starts_with(BLOB_REF_PREFIX) {
            return Ok(RecordContent::Inline(Cow::Owned(to_raw_value(&original)?)));
        }
        self.journal
            .store_blob(&original)
            .map(RecordContent::Stored)
    }

    pub(crate) fn record_result(
        &mut self,
        memory: &MemoryStore,
        call: &CallRef,
        outcome: &Outcome,
        answer: &CallAnswer,
        stats: (Duration, u32, Option<&AgentUsage>),
    ) -> io::Result<()> {
        let Some(open) = self.open_calls.remove(&call.key()) else {
            return Ok(());
        };
        self.counts.answered += 1;
        self.counts.agent_calls += usize::from(call.parent.is_some());
        self.counts.recalled += usize::from(outcome.is_restored());
        let kind = end_record_kind(outcome);
        let content = MaskedContent(&answer.content, &self.mask);
        let fields = CallEndRecord::new(call, outcome, answer, stats, &self.mask);
        self.counts.count_call_end(&kind, answer.is_error);
        let (record, detour) = (Some(open.record_id), open.takes_detour());
        self.journal
            .append(kind, record, (&content, &fields), detour)?;
        let (_, _, agent_usage) = stats;
        memory.end_agent(call);
        if agent_usage.is_some() {
            let is_this_call = |agent_call: &CallRef| agent_call.key() == call.key();
            self.open_turns
                .retain(|(_, parent), _| !parent.as_deref().is_some_and(is_this_call));
        }
        Ok(())
    }
}

// Records of attempts, below their call.

impl Recorder {
    pub(crate) fn record_start(
        &mut self,
        memory: &MemoryStore,
        call: &CallRef,
        accepted: &AcceptedCall,
        attempt: (u32, &str, Option<Duration>),
        claim: Option<&CallClaim>,
    ) -> io::Result<()> {
        let open = self.open_calls.get_mut(&call.key());
        let failed_attempt = open.and_then(|open| open.failed_attempt.take());
        let fields = StartRecord {
            after: failed_attempt,
            ..StartRecord::new(call, accepted, attempt, claim, &self.mask)
        };
        let place = self.append_to_call(RecordKind::ToolStart, call, (&(), &fields))?;
        if let Some(open) = self.open_calls.get_mut(&call.key()) {
            open.start = Some(place);
        }
        if let Some(claim) = claim.filter(|_| fields.agent.is_some()) {
            memory.begin_agent(call, &claim.idempotency_key);
        }
        Ok(())
    }

    /// Keeps a failed attempt for the record of the next start.
    pub(crate) fn record_retry(&mut self, call: &CallRef, outcome: &Outcome, wait: Duration) {
        if let Some(open) = self.open_calls.get_mut(&call.key()) {
            open.failed_attempt = Some(FailedAttempt::new(outcome, wait));
        }
    }
}
