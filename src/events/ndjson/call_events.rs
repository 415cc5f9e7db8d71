//! The events of a call, and what each of them makes known about it.

use std::borrow::Cow;
use std::time::Duration;

use super::NdjsonSink;
use crate::events::event_line::EventLine;
use toolq_core::types::{Approval, CallAnswer, CallRef, CheckedCall, MaskedText, Outcome, Tool};

impl NdjsonSink {
    pub(super) fn on_partial_input(&mut self, call: &CallRef, tool: Option<&Tool>, text: &str) {
        if self.calls.set_partial_input(call, tool, text) {
            let position = Some(call.position);
            self.write_call_event(
                call,
                EventLine {
                    position,
                    ..EventLine::new("tool_partial")
                },
            );
        }
    }

    pub(super) fn on_approval_decided(&mut self, call: &CallRef, approval: &Approval) {
        let decision = Some(approval.decision.name());
        self.write_call_event(
            call,
            EventLine {
                decision,
                ..EventLine::new("approval_decided")
            },
        );
    }

    pub(super) fn on_queued(&mut self, checked: &CheckedCall) {
        let call = CallRef::new(&checked.call, None);
        self.calls.set_queued(&call, checked);
        let position = Some(call.position);
        self.write_call_event(
            &call,
            EventLine {
                position,
                ..EventLine::new("tool_queued")
            },
        );
    }

    /// Writes an event of an agent. Its `turn` is that of the agent's call.
    pub(super) fn write_agent_event(&self, call: &CallRef, agent: &str, line: EventLine<'_>) {
        let agent_name = Some(MaskedText(agent, &self.mask));
        self.write_call_event(call, EventLine { agent_name, ..line });
    }

    /// Reports that an agent requests a model response. `turn` is the agent's own turn, from 0; it also becomes the tip
    /// if the tool has no `status` text.
    pub(super) fn on_agent_progress(
        &mut self,
        call: &CallRef,
        agent: &str,
        turn: u64,
        max_turns: u64,
    ) {
        let tip = format!("turn {turn}, at most {max_turns} turns");
        self.calls.set_default_tip(call, tip);
        let line = EventLine {
            agent_name: Some(MaskedText(agent, &self.mask)),
            max_turns: Some(max_turns),
            ..EventLine::new("agent_progress")
        };
        let line = line.with_call(call, self.calls.state(call), &self.mask);
        let turn = usize::try_from(turn).unwrap_or(usize::MAX);
        self.write_line(EventLine { turn, ..line });
    }

    pub(super) fn on_started(&mut self, call: &CallRef, attempt: u32) {
        self.calls.set_started(call);
        let attempt = Some(attempt);
        self.write_call_event(
            call,
            EventLine {
                attempt,
                ..EventLine::new("tool_started")
            },
        );
    }

    /// Writes the end of a call. No result of a nested call is written later, so its state is dropped now.
    pub(super) fn on_finished(
        &mut self,
        call: &CallRef,
        outcome: &Outcome,
        answer: &CallAnswer,
        duration: Duration,
    ) {
        self.calls.set_finished(call, answer);
        let line = EventLine::finished(outcome, answer, duration, &self.mask);
        self.write_call_event(call, line);
        if call.parent.is_some() {
            self.calls.remove(call);
        }
    }

    pub(super) fn on_status(
        &mut self,
        call: &CallRef,
        tip: Option<Cow<'_, str>>,
        progress: Option<f64>,
    ) {
        self.calls.set_status(call, tip, progress);
        self.write_call_event(call, EventLine::new("tool_status"));
    }
}
