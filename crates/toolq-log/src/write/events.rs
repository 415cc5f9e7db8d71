//! Events → records: which event is written as what, below which record.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::records::{
    AttemptFields, Before, Brief, CallContent, CallFields, Kind, ProbeFields, ResponseFields,
    ResultFields, ResultKind, StartFields, TurnFields, tool_sha256,
};
use crate::resume::Place;
use crate::write::journal::Durable;
use crate::write::session_log::{OpenCall, SessionLog, Sync};
use toolq_core::json::json_line;
use toolq_core::types::{
    Accepted, AgentUse, Answer, CallRef, Checked, Effect, Event, Finding, Invocation,
    MaskedContent, MaskedJson, Outcome, Refused, Response, Sink, Verdict,
};

/// Bytes of an input that metadata has room for.
const MAX_IN_METADATA: usize = 8 << 10;

impl Sink for SessionLog {
    fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
        self.heed(|log| {
            let mut durable = Durable::Sometime;
            for event in events {
                durable = durable.max(log.durable(event));
                log.record(event)?;
            }
            if durable == Durable::Sometime && events.iter().any(is_start) {
                log.journal.look()?;
            }
            log.journal.commit(durable)
        })
    }

    fn settle(&mut self) -> Result<(), Refused> {
        self.heed(|log| log.journal.settle())
    }
}

/// Whether something is about to run.
fn is_start(event: &Event<'_>) -> bool {
    matches!(event, Event::Started { .. } | Event::Describing { .. })
}

/// Whether the event is the start of a call that does something to the world.
fn has_effect(event: &Event<'_>) -> bool {
    matches!(event, Event::Started { accepted, .. } if accepted.tool.effect != Effect::Read)
}

impl SessionLog {
    /// When the record of this event must survive a loss of power. A lost result of a call that may run again costs
    /// time only, so it can wait for the next sync.
    fn durable(&self, event: &Event<'_>) -> Durable {
        match event {
            _ if self.sync == Sync::All => match event {
                Event::Started { .. } | Event::Describing { .. } => Durable::Now,
                Event::Finished { .. } => Durable::BeforeRead,
                _ => Durable::Sometime,
            },
            Event::Started { .. } if has_effect(event) => Durable::Now,
            Event::Finished { outcome, .. } if outcome.is_recalled() => Durable::Sometime,
            Event::Finished { outcome, .. } if outcome.is_in_doubt() => Durable::Now,
            Event::Finished { call, .. } => {
                let open = self.calls.get(&call.key());
                match open.and_then(|open| open.effect) {
                    Some(Effect::Write | Effect::Idempotent) => Durable::BeforeRead,
                    Some(Effect::Read) | None => Durable::Sometime,
                }
            }
            _ => Durable::Sometime,
        }
    }

    fn record(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::TurnStarted { turn, within } => self.turn(*turn, *within)?,
            Event::Queued { checked, batch } => self.call(checked, *batch)?,
            Event::Started {
                call,
                accepted,
                attempt,
                idempotency_key,
            } => self.start(call, accepted, *attempt, idempotency_key)?,
            Event::Retrying {
                call,
                outcome,
                wait,
                ..
            } => self.retrying(call, outcome, *wait),
            Event::Finished {
                call,
                outcome,
                answer,
                duration,
                attempts,
                agent,
            } => self.result(call, outcome, answer, (*duration, *attempts), *agent)?,
            Event::AgentMessage {
                call,
                response: Some((response, digest)),
                turn,
                ..
            } => self.response(call, *turn, response, digest)?,
            Event::QueueDrained { turn } => {
                self.turns.remove(&(*turn, None));
            }
            Event::Probing { call } => self.probing(call)?,
            Event::Probed {
                call,
                finding,
                outcome,
                duration,
            } => self.probed(call, *finding, outcome, *duration)?,
            Event::Describing { tool } => self.describing(tool)?,
            Event::Described {
                tool,
                outcome,
                duration,
                attempts,
            } => self.described(tool, outcome, (*duration, *attempts))?,
            Event::AgentStarted { .. }
            | Event::AgentProgress { .. }
            | Event::AgentMessage { .. }
            | Event::AgentCompleted { .. }
            | Event::Part { .. }
            | Event::BatchStarted { .. }
            | Event::Status { .. }
            | Event::ResultWritten { .. } => {}
        }
        Ok(())
    }

    /// A turn of the input, or one of an agent, below the call that the agent works on.
    fn turn(&mut self, turn: usize, within: Option<&Arc<CallRef>>) -> io::Result<()> {
        let key = (turn, within.cloned());
        let agent = within.map(|agent| self.calls.get(&agent.key()).map(|open| open.record));
        let earlier = self.earlier.as_ref().filter(|_| agent != Some(None));
        if let Some(record) = earlier.and_then(|earlier| earlier.turn(agent.flatten(), turn)) {
            self.turns.insert(key, record);
            return Ok(());
        }
        let fields = TurnFields {
            turn,
            agent: within.map(|agent| self.mask.text(&agent.tool_name).into_owned()),
        };
        let parent = agent.unwrap_or(Some(self.session));
        let record = self.journal.add(&Kind::Turn, parent, &(), &fields)?;
        self.turns.insert(key, record);
        self.counts.turns += 1;
        Ok(())
    }

    /// What a model answered, below the call that its agent works on: as it came, so that a later run need not ask again.
    fn response(
        &mut self,
        call: &CallRef,
        turn: usize,
        response: &Response,
        digest: &str,
    ) -> io::Result<()> {
        let parent = self.calls.get(&call.key()).map(|open| open.record);
        let content = MaskedJson(&response.body, &self.mask);
        let fields = ResponseFields::of(call, turn, response, digest, &self.mask);
        self.journal
            .add(&Kind::ModelResponse, parent, &content, &fields)?;
        Ok(())
    }

    fn call(&mut self, checked: &Checked, batch: Option<usize>) -> io::Result<()> {
        let call = CallRef::new(&checked.call, None);
        let known = match self.earlier.as_ref() {
            Some(earlier) => earlier.check(&checked.call, &self.mask),
            None => Ok(false),
        };
        self.conflicts |= known.is_err() && call.within.is_none();
        if self.conflicts && call.within.is_none() {
            return Ok(());
        }
        let place = self.place_of(&call).filter(|_| known == Ok(true));
        let known = place.and_then(|place| self.earlier.as_ref()?.entry(place));
        let record = match known {
            Some(entry) => entry.record,
            None => self.new_call(checked, batch)?,
        };
        let open = OpenCall {
            record,
            failed: None,
            effect: None,
        };
        self.calls.insert(call.key(), open);
        Ok(())
    }

    /// Where a call stands in the log; none where that has nothing of who asks for it.
    fn place_of(&self, call: &CallRef) -> Option<Place> {
        let within = match &call.within {
            Some(agent) => Some(self.calls.get(&agent.key())?.record),
            None => None,
        };
        Some(Place {
            within,
            turn: call.turn,
            position: call.position,
        })
    }

    fn new_call(&mut self, checked: &Checked, batch: Option<usize>) -> io::Result<Uuid> {
        let digest = match &checked.verdict {
            Verdict::Accepted(accepted) => {
                let tool = &*accepted.tool;
                if !self.digests.contains_key(&tool.name) {
                    self.digests.insert(tool.name.clone(), tool_sha256(tool));
                }
                self.digests.get(&tool.name).map(String::as_str)
            }
            Verdict::Rejected(_) => None,
        };
        let content = CallContent::of(checked, &self.mask);
        let before = CallContent::before(checked, &self.mask);
        let before = before.map(|before| self.place(before)).transpose()?;
        let fields = CallFields::of(checked, batch, before, &self.mask, digest);
        let within = checked.call.within.clone();
        let turn = self.turns.get(&(checked.call.turn, within)).copied();
        self.counts.calls += 1;
        self.journal.add(&Kind::ToolCall, turn, &content, &fields)
    }

    /// Metadata has no room for a large input, and one may not be read as the name of a file.
    fn place<'a>(&self, input: MaskedJson<'a>) -> io::Result<Before<'a>> {
        let text = input.0.get();
        if text.len() <= MAX_IN_METADATA && !text.starts_with(crate::records::NAMES_FILE) {
            return Ok(Before::Inline(input));
        }
        self.journal.store(&input).map(Before::Stored)
    }

    fn start(
        &mut self,
        call: &CallRef,
        accepted: &Accepted,
        attempt: u32,
        idempotency_key: &str,
    ) -> io::Result<()> {
        let open = self.calls.get_mut(&call.key());
        let known = open.map(|open| {
            open.effect = Some(accepted.tool.effect);
            (open.record, open.failed.take())
        });
        let (parent, failed) = known.unzip();
        let is_agents = matches!(accepted.invocation, Some(Invocation::Agent(_)));
        let fields = StartFields {
            tool_use_id: Brief(&call.tool_use_id, &self.mask),
            tool_name: Brief(&call.tool_name, &self.mask),
            attempt,
            idempotency_key,
            effect: accepted.tool.effect.name(),
            after: failed.flatten(),
            agent: is_agents.then_some(accepted.tool.name.as_str()),
        };
        self.journal.add(&Kind::ToolStart, parent, &(), &fields)?;
        Ok(())
    }

    /// An attempt that failed stands in the record of the next start.
    fn retrying(&mut self, call: &CallRef, outcome: &Outcome, wait: Duration) {
        if let Some(open) = self.calls.get_mut(&call.key()) {
            open.failed = Some(AttemptFields::of(outcome, wait));
        }
    }

    /// Whether a call is rejected as it was before.
    fn is_known(&self, call: &CallRef, outcome: &Outcome, answer: &Answer) -> bool {
        let (Some(earlier), Some(place)) = (&self.earlier, self.place_of(call)) else {
            return false;
        };
        if !matches!(outcome, Outcome::Rejected(_)) {
            return false;
        }
        let content = MaskedContent(&answer.content, &self.mask);
        let json = serde_json::to_string(&content).unwrap_or_default();
        earlier.says(place, &json_line(&json))
    }

    fn probing(&mut self, call: &CallRef) -> io::Result<()> {
        let parent = self.calls.get(&call.key()).map(|open| open.record);
        let fields = ProbeFields::of(call, &self.mask);
        self.journal.add(&Kind::ProbeStart, parent, &(), &fields)?;
        Ok(())
    }

    fn probed(
        &mut self,
        call: &CallRef,
        finding: Finding,
        outcome: &Outcome,
        duration: Duration,
    ) -> io::Result<()> {
        let parent = self.calls.get(&call.key()).map(|open| open.record);
        let fields = ProbeFields::of(call, &self.mask).ended(finding, outcome, duration);
        self.journal.add(&Kind::ProbeEnd, parent, &(), &fields)?;
        Ok(())
    }

    /// What was answered without having been started is no result: a later run may start it. Nor is what may or may
    /// not have had its effect: no later run may start that.
    fn result(
        &mut self,
        call: &CallRef,
        outcome: &Outcome,
        answer: &Answer,
        spent: (Duration, u32),
        agent: Option<&AgentUse>,
    ) -> io::Result<()> {
        // It is none of the task.
        let Some(OpenCall { record, .. }) = self.calls.remove(&call.key()) else {
            return Ok(());
        };
        self.counts.answered += 1;
        if outcome.is_recalled() {
            self.counts.recalled += 1;
            return Ok(());
        }
        if self.is_known(call, outcome, answer) {
            return Ok(());
        }
        let kind = ResultKind::of(outcome);
        let content = MaskedContent(&answer.content, &self.mask);
        let fields = ResultFields::of(call, outcome, answer.is_error, spent, &self.mask);
        let fields = fields.with_agent(agent);
        self.journal
            .add(&kind.kind(), Some(record), &content, &fields)?;
        self.counts.add(kind, answer.is_error);
        if agent.is_some() {
            let of_call = |within: &CallRef| within.key() == call.key();
            self.turns
                .retain(|(_, within), _| !within.as_deref().is_some_and(of_call));
        }
        Ok(())
    }
}
