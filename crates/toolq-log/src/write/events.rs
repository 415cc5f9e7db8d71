//! Turns events into records: which record an event becomes, and which record is its parent.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::to_raw_value;
use uuid::Uuid;

use crate::records::{
    BLOB_REF_PREFIX, CallContent, CallEndRecord, CallRecord, FailedAttempt, ModelResponseRecord,
    ProbeRecord, RecordContent, RecordKind, StartRecord, SyncPolicy, ToolMeaning, TurnRecord,
    end_record_kind,
};
use crate::resume::CallPosition;
use crate::write::journal::Durability;
use crate::write::session_log::{OpenCall, SessionLog};
use toolq_core::json::to_json_line;
use toolq_core::types::{
    AcceptedCall, AgentUsage, CallAnswer, CallRef, CheckedCall, Effect, EmitError, Event,
    EventSink, MaskedContent, MaskedJson, ModelResponse, Outcome, ProbeFinding, TurnOrigin,
    Verdict,
};

/// Largest input that metadata holds inline, in bytes.
const MAX_INLINE_INPUT_BYTES: usize = 8 << 10;

impl EventSink for SessionLog {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        self.write_guarded(|log| {
            let mut durability = Durability::Lazy;
            for event in events {
                durability = durability.max(log.durability_of(event));
                log.record_event(event)?;
            }
            if durability == Durability::Lazy && events.iter().any(is_start_event) {
                log.journal.check_file()?;
            }
            log.journal.commit(durability)
        })
    }

    fn flush(&mut self) -> Result<(), EmitError> {
        self.write_guarded(|log| log.journal.flush())
    }
}

/// Returns whether the event announces that something is about to run.
fn is_start_event(event: &Event<'_>) -> bool {
    matches!(event, Event::Started { .. } | Event::Describing { .. })
}

/// Returns whether the event starts a call that isn't `read`.
fn starts_call_with_effect(event: &Event<'_>) -> bool {
    matches!(event, Event::Started { accepted, .. } if accepted.tool.effect != Effect::Read)
}

impl SessionLog {
    /// Returns when the record of this event must survive a power loss. Losing the result of a `read` call only costs
    /// the time to repeat it, so it can wait for the next sync.
    fn durability_of(&self, event: &Event<'_>) -> Durability {
        match event {
            _ if self.sync == SyncPolicy::All => match event {
                Event::Started { .. } | Event::Describing { .. } => Durability::Immediate,
                Event::Finished { .. } => Durability::BeforeDelivery,
                _ => Durability::Lazy,
            },
            Event::Started { .. } if starts_call_with_effect(event) => Durability::Immediate,
            Event::Finished { outcome, .. } if outcome.is_restored() => Durability::Lazy,
            Event::Finished { outcome, .. } if outcome.is_in_doubt() => Durability::Immediate,
            Event::Finished { call, .. } => {
                let open = self.open_calls.get(&call.key());
                match open.and_then(|open| open.effect) {
                    Some(Effect::Write | Effect::Idempotent) => Durability::BeforeDelivery,
                    Some(Effect::Read) | None => Durability::Lazy,
                }
            }
            _ => Durability::Lazy,
        }
    }

    fn record_event(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::TurnStarted {
                turn,
                parent,
                origin,
            } => self.record_turn(*turn, *parent, origin)?,
            Event::Queued { checked, batch } => self.record_call(checked, *batch)?,
            Event::Started {
                call,
                accepted,
                attempt,
                idempotency_key,
            } => self.record_start(call, accepted, *attempt, idempotency_key)?,
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
                agent_usage: agent,
            } => self.record_result(call, outcome, answer, (*duration, *attempts), *agent)?,
            Event::AgentMessage {
                call,
                response: Some((response, digest)),
                turn,
                ..
            } => self.record_response(call, *turn, response, digest)?,
            Event::QueueDrained { turn } => {
                self.open_turns.remove(&(*turn, None));
            }
            Event::Probing { call } => self.record_probe_start(call)?,
            Event::Probed {
                call,
                finding,
                outcome,
                duration,
            } => self.record_probe_end(call, *finding, outcome, *duration)?,
            Event::Describing { tool } => self.record_describe_start(tool)?,
            Event::Described {
                tool,
                outcome,
                duration,
                attempts,
            } => self.record_describe_end(tool, outcome, (*duration, *attempts))?,
            Event::ServerStarted(start) => self.record_server_start(start)?,
            Event::ServerEnded(end) => self.record_server_end(end)?,
            Event::AgentStarted { .. }
            | Event::AgentProgress { .. }
            | Event::AgentMessage { .. }
            | Event::AgentCompleted { .. }
            | Event::PartialInput { .. }
            | Event::BatchStarted { .. }
            | Event::Status { .. }
            | Event::ResultWritten { .. } => {}
        }
        Ok(())
    }

    /// Records a turn of the input or of an agent; the latter goes below the call that the agent works on. A turn that
    /// an earlier run has recorded isn't recorded again.
    fn record_turn(
        &mut self,
        turn: usize,
        parent: Option<&Arc<CallRef>>,
        origin: &TurnOrigin,
    ) -> io::Result<()> {
        let key = (turn, parent.cloned());
        let agent_call_id =
            parent.map(|agent| self.open_calls.get(&agent.key()).map(|open| open.record_id));
        let history = self
            .history
            .as_ref()
            .filter(|_| agent_call_id != Some(None));
        if let Some(record) =
            history.and_then(|history| history.turn_record(agent_call_id.flatten(), turn))
        {
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

    /// Records the response of a model below the call that its agent works on, so that a later run doesn't have to
    /// repeat the request.
    fn record_response(
        &mut self,
        call: &CallRef,
        turn: usize,
        response: &ModelResponse,
        digest: &str,
    ) -> io::Result<()> {
        let parent = self.open_calls.get(&call.key()).map(|open| open.record_id);
        let content = MaskedJson(&response.body, &self.mask);
        let fields = ModelResponseRecord::new(call, turn, response, digest, &self.mask);
        self.journal
            .append(&RecordKind::ModelResponse, parent, &content, &fields)?;
        Ok(())
    }

    fn record_call(&mut self, checked: &CheckedCall, batch: Option<usize>) -> io::Result<()> {
        let call = CallRef::new(&checked.call, None);
        let log_match = match self.history.as_ref() {
            Some(history) => history.check_call(&checked.call, &self.mask),
            None => Ok(false),
        };
        self.has_conflict |= log_match.is_err() && call.parent.is_none();
        if self.has_conflict && call.parent.is_none() {
            return Ok(());
        }
        let position = self.position_of(&call).filter(|_| log_match == Ok(true));
        let logged_call = position.and_then(|position| self.history.as_ref()?.call_at(position));
        let record = match logged_call {
            Some(logged_call) => logged_call.record_id,
            None => self.append_new_call(checked, batch)?,
        };
        let open = OpenCall {
            record_id: record,
            failed_attempt: None,
            effect: None,
        };
        self.open_calls.insert(call.key(), open);
        Ok(())
    }

    /// Returns the position of a call in the log, or `None` if the agent that requested it has no record.
    fn position_of(&self, call: &CallRef) -> Option<CallPosition> {
        let parent = match &call.parent {
            Some(agent) => Some(self.open_calls.get(&agent.key())?.record_id),
            None => None,
        };
        Some(CallPosition {
            parent,
            turn: call.turn,
            position: call.position,
        })
    }

    fn append_new_call(&mut self, checked: &CheckedCall, batch: Option<usize>) -> io::Result<Uuid> {
        let tool_meaning = match &checked.verdict {
            Verdict::Accepted(accepted) => {
                let tool = &*accepted.tool;
                if !self.tool_meanings.contains_key(&tool.name) {
                    self.tool_meanings
                        .insert(tool.name.clone(), ToolMeaning::new(tool));
                }
                self.tool_meanings.get(&tool.name)
            }
            Verdict::Rejected(_) => None,
        };
        let content = CallContent::new(checked, &self.mask);
        let input_before = CallContent::input_before_coercion(checked, &self.mask);
        let input_before = input_before
            .map(|input| self.inline_or_store(input))
            .transpose()?;
        let fields = CallRecord::new(checked, batch, input_before, tool_meaning, &self.mask);
        let parent = checked.call.parent.clone();
        let turn_id = self.open_turns.get(&(checked.call.turn, parent)).copied();
        self.counts.calls += 1;
        self.journal
            .append(&RecordKind::ToolCall, turn_id, &content, &fields)
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

    fn record_start(
        &mut self,
        call: &CallRef,
        accepted: &AcceptedCall,
        attempt: u32,
        idempotency_key: &str,
    ) -> io::Result<()> {
        let open = self.open_calls.get_mut(&call.key());
        let known = open.map(|open| {
            open.effect = Some(accepted.tool.effect);
            (open.record_id, open.failed_attempt.take())
        });
        let (parent, failed_attempt) = known.unzip();
        let start = (attempt, idempotency_key);
        let fields = StartRecord::new(call, accepted, start, failed_attempt.flatten(), &self.mask);
        self.journal
            .append(&RecordKind::ToolStart, parent, &(), &fields)?;
        Ok(())
    }

    /// Keeps a failed attempt for the record of the next start.
    fn record_retry(&mut self, call: &CallRef, outcome: &Outcome, wait: Duration) {
        if let Some(open) = self.open_calls.get_mut(&call.key()) {
            open.failed_attempt = Some(FailedAttempt::new(outcome, wait));
        }
    }

    /// Returns whether an earlier run rejected the call with the same answer.
    fn is_known_rejection(
        &self,
        call: &CallRef,
        outcome: &Outcome,
        answer: &CallAnswer,
    ) -> io::Result<bool> {
        let (Some(history), Some(position)) = (&self.history, self.position_of(call)) else {
            return Ok(false);
        };
        if !matches!(outcome, Outcome::Rejected(_)) {
            return Ok(false);
        }
        let json = serde_json::to_string(&MaskedContent(&answer.content, &self.mask))?;
        Ok(history.has_same_rejection(position, &to_json_line(&json)))
    }

    fn record_probe_start(&mut self, call: &CallRef) -> io::Result<()> {
        let parent = self.open_calls.get(&call.key()).map(|open| open.record_id);
        let fields = ProbeRecord::new(call, &self.mask);
        self.journal
            .append(&RecordKind::ProbeStart, parent, &(), &fields)?;
        Ok(())
    }

    fn record_probe_end(
        &mut self,
        call: &CallRef,
        finding: ProbeFinding,
        outcome: &Outcome,
        duration: Duration,
    ) -> io::Result<()> {
        let parent = self.open_calls.get(&call.key()).map(|open| open.record_id);
        let fields = ProbeRecord::new(call, &self.mask).with_finding(finding, outcome, duration);
        self.journal
            .append(&RecordKind::ProbeEnd, parent, &(), &fields)?;
        Ok(())
    }

    fn record_result(
        &mut self,
        call: &CallRef,
        outcome: &Outcome,
        answer: &CallAnswer,
        duration_and_attempts: (Duration, u32),
        agent_usage: Option<&AgentUsage>,
    ) -> io::Result<()> {
        // A call without a record: the input conflicts with the task that is being resumed.
        let Some(OpenCall {
            record_id: record, ..
        }) = self.open_calls.remove(&call.key())
        else {
            return Ok(());
        };
        self.counts.answered += 1;
        if outcome.is_restored() {
            self.counts.recalled += 1;
            return Ok(());
        }
        if self.is_known_rejection(call, outcome, answer)? {
            return Ok(());
        }
        let kind = end_record_kind(outcome);
        let content = MaskedContent(&answer.content, &self.mask);
        let fields = CallEndRecord::new(
            call,
            outcome,
            answer,
            duration_and_attempts,
            agent_usage,
            &self.mask,
        );
        self.journal
            .append(&kind, Some(record), &content, &fields)?;
        self.counts.count_call_end(&kind, answer.is_error);
        if agent_usage.is_some() {
            let is_this_call = |agent_call: &CallRef| agent_call.key() == call.key();
            self.open_turns
                .retain(|(_, parent), _| !parent.as_deref().is_some_and(is_this_call));
        }
        Ok(())
    }
}
