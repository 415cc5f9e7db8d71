//! The calls of a run as its events tell them, in the form in which a log has them.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;

use crate::log_view::content_text;
use crate::timeline::{
    TimelineAttempt, TimelineCall, TimelineEnd, TimelineResponse, keep_beginning,
};
use redact::Mask;
use toolq_core::json::expect_json;
use toolq_core::types::{
    AgentUsage, CallAnswer, CallKey, CallRef, CheckedCall, MaskedContent, MaskedJson,
    ModelResponse, Outcome, Traceparent, TurnOrigin, Verdict,
};

/// The calls that have no result yet, without secrets.
pub(super) struct LiveCalls {
    mask: Arc<Mask>,
    /// Inputs and results are kept.
    captures_content: bool,
    calls: HashMap<CallKey, TimelineCall>,
    /// The parent spans that the requests for turns of the input named, by turn.
    traceparents: HashMap<usize, Traceparent>,
}

impl LiveCalls {
    pub(super) fn new(mask: Arc<Mask>, captures_content: bool) -> Self {
        Self {
            mask,
            captures_content,
            calls: HashMap::new(),
            traceparents: HashMap::new(),
        }
    }

    /// Notes where a turn of the input comes from.
    pub(super) fn begin_turn(&mut self, turn: usize, origin: &TurnOrigin) {
        if let Some(parent) = &origin.traceparent {
            self.traceparents.insert(turn, parent.clone());
        }
    }

    /// Forgets where a turn came from, as all of its calls have ended.
    pub(super) fn end_turn(&mut self, turn: usize) {
        self.traceparents.remove(&turn);
    }

    /// Adds a call that was queued or rejected.
    pub(super) fn add(&mut self, checked: &CheckedCall, batch: Option<usize>, at_ms: u64) {
        let call = CallRef::new(&checked.call, batch);
        let mut logged = TimelineCall::requested(
            self.mask.apply(&call.tool_use_id).into_owned(),
            self.mask.apply(&call.tool_name).into_owned(),
            call.path(),
            at_ms,
        );
        let root = logged.path.last().map_or(0, |(turn, _)| *turn);
        logged.traceparent = self.traceparents.get(&root).cloned();
        logged.batch = batch;
        logged.input = self.input_text(checked);
        self.calls.insert(call.key(), logged);
    }

    /// Adds the start of an attempt.
    pub(super) fn start(&mut self, call: &CallRef, at_ms: u64) {
        if let Some(call) = self.calls.get_mut(&call.key()) {
            call.attempts.push(TimelineAttempt {
                run: 0,
                started_ms: at_ms,
                failure: None,
            });
        }
    }

    /// Sets how the last attempt failed.
    pub(super) fn fail_attempt(&mut self, call: &CallRef, outcome: &Outcome, at_ms: u64) {
        let call = self.calls.get_mut(&call.key());
        if let Some(last) = call.and_then(|call| call.attempts.last_mut()) {
            last.failure = Some((outcome.status(), at_ms));
        }
    }

    /// Returns a response to the agent that works on a call, and that call.
    pub(super) fn respond(
        &mut self,
        call: &CallRef,
        (turn, response): (usize, &ModelResponse),
        at_ms: u64,
    ) -> Option<(&TimelineCall, TimelineResponse)> {
        let masked = |text: &Option<String>| {
            let text = text.as_ref()?;
            Some(self.mask.apply(text).into_owned())
        };
        let provider = response.provider.map(str::to_owned);
        let responding = self.calls.get_mut(&call.key())?;
        responding.provider.clone_from(&provider);
        let response = TimelineResponse {
            provider,
            at_ms,
            run: 0,
            turn,
            model: masked(&response.model),
            message_id: masked(&response.message_id),
            usage: response.usage,
        };
        Some((responding, response))
    }

    /// Removes a call that has ended, and returns it, unless it ended in an earlier run.
    pub(super) fn finish(
        &mut self,
        call: &CallRef,
        (outcome, answer): (&Outcome, &CallAnswer),
        agent: Option<&AgentUsage>,
        at_ms: u64,
    ) -> Option<TimelineCall> {
        let mut logged = self.calls.remove(&call.key())?;
        if let Some(agent) = call.parent.as_ref()
            && let Some(agent) = self.calls.get_mut(&agent.key())
        {
            agent.note_turn_end(call.turn, at_ms);
        }
        let output = if self.captures_content {
            let content = to_json(&MaskedContent(&answer.content, &self.mask));
            keep_beginning(content_text(&content))
        } else {
            String::new()
        };
        logged.end = Some(TimelineEnd {
            line: 0,
            at_ms,
            duration_ms: None,
            label: String::new(),
            summary: String::new(),
            output,
            status: outcome.status(),
            is_error: answer.is_error,
            agent: agent.cloned(),
        });
        (!outcome.is_restored()).then_some(logged)
    }

    /// Returns the input that is executed, or else the requested one, as a log has it.
    fn input_text(&self, checked: &CheckedCall) -> String {
        let executed = match &checked.verdict {
            Verdict::Accepted(accepted) => Some(&accepted.input),
            Verdict::Rejected(_) => checked.call.input.as_ref().ok(),
        };
        match executed {
            _ if !self.captures_content => String::new(),
            Some(input) => keep_beginning(to_json(&MaskedJson(input.as_raw(), &self.mask))),
            None => "null".to_owned(),
        }
    }
}

fn to_json(value: &impl Serialize) -> String {
    expect_json(serde_json::to_string(value))
}
