//! Events → records: which event is written as what, below which record.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{
    Accepted, AgentUse, Answer, CallRef, Checked, Event, MaskedContent, MaskedJson, MaskedText,
    Outcome, Refused, Response, Sink,
};

use super::SessionLog;
use super::fields::{
    AttemptFields, CallContent, CallFields, ResponseFields, ResultFields, ResultKind, StartFields,
    TurnFields,
};
use super::session::OpenCall;

impl Sink for SessionLog {
    fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
        self.heed(|log| events.iter().try_for_each(|event| log.record(event)))
    }
}

impl SessionLog {
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
            Event::AgentStarted { .. }
            | Event::AgentProgress { .. }
            | Event::AgentMessage { .. }
            | Event::AgentCompleted { .. }
            | Event::BatchStarted { .. }
            | Event::Status { .. }
            | Event::ResultWritten { .. } => {}
        }
        Ok(())
    }

    /// A turn of the input, or one of an agent, below the call that the agent works on.
    fn turn(&mut self, turn: usize, within: Option<&Arc<CallRef>>) -> io::Result<()> {
        let fields = TurnFields {
            turn,
            agent: within.map(|agent| MaskedText(&agent.tool_name, &self.mask)),
        };
        let parent = match within {
            None => Some(self.session),
            Some(agent) => self.calls.get(&agent.key()).map(|open| open.record),
        };
        let record = self.journal.write("turn", parent, &(), &fields)?;
        self.turns.insert((turn, within.cloned()), record);
        self.counts.turns += usize::from(within.is_none());
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
            .write("model_response", parent, &content, &fields)?;
        Ok(())
    }

    fn call(&mut self, checked: &Checked, batch: Option<usize>) -> io::Result<()> {
        let content = CallContent::of(checked, &self.mask);
        let fields = CallFields::of(checked, batch, &self.mask);
        let (call, within) = (&checked.call, checked.call.within.clone());
        let turn = self.turns.get(&(call.turn, within)).copied();
        let record = self.journal.write("tool_call", turn, &content, &fields)?;
        let open = OpenCall {
            record,
            failed: None,
        };
        let call = CallRef::new(&checked.call, None);
        self.calls.insert(call.key(), open);
        self.counts.calls += usize::from(call.within.is_none());
        Ok(())
    }

    fn start(
        &mut self,
        call: &CallRef,
        accepted: &Accepted,
        attempt: u32,
        idempotency_key: &str,
    ) -> io::Result<()> {
        let open = self.calls.get_mut(&call.key());
        let (parent, failed) = open.map(|open| (open.record, open.failed.take())).unzip();
        let fields = StartFields {
            tool_use_id: MaskedText(&call.tool_use_id, &self.mask),
            tool_name: MaskedText(&call.tool_name, &self.mask),
            attempt,
            idempotency_key,
            effect: accepted.tool.effect.name(),
            after: failed.flatten(),
        };
        self.journal.write("tool_start", parent, &(), &fields)?;
        Ok(())
    }

    /// An attempt that failed stands in the record of the next start.
    fn retrying(&mut self, call: &CallRef, outcome: &Outcome, wait: Duration) {
        if let Some(open) = self.calls.get_mut(&call.key()) {
            open.failed = Some(AttemptFields::of(outcome, wait));
        }
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
        let parent = self.calls.remove(&call.key()).map(|open| open.record);
        let kind = ResultKind::of(outcome);
        let content = MaskedContent(&answer.content, &self.mask);
        let fields = ResultFields::of(call, outcome, answer.is_error, spent, &self.mask);
        let fields = fields.with_agent(agent);
        self.journal.write(kind.name(), parent, &content, &fields)?;
        if call.within.is_none() {
            self.counts.add(kind, answer.is_error);
        }
        if agent.is_some() {
            let of_call = |within: &CallRef| within.key() == call.key();
            self.turns
                .retain(|(_, within), _| !within.as_deref().is_some_and(of_call));
        }
        Ok(())
    }
}
