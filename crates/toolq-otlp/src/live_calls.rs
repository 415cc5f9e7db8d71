//! The calls of a run as spans need them, collected from its events.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Serialize;

use redact::Mask;
use toolq_core::json::expect_json;
use toolq_core::text::{content_text, keep_beginning};
use toolq_core::types::{
    AgentUsage, CallAnswer, CallKey, CallPath, CallRef, CheckedCall, MaskedContent, MaskedJson,
    Outcome, Status, Verdict,
};

/// A call, without secrets. Times are in milliseconds since 1970.
#[derive(Debug)]
pub(crate) struct TracedCall {
    pub(crate) tool_use_id: String,
    pub(crate) tool_name: String,
    pub(crate) path: CallPath,
    /// `None` for a call that wasn't going to run.
    pub(crate) batch: Option<usize>,
    /// The input as JSON; empty unless content is captured.
    pub(crate) input: String,
    pub(crate) requested_ms: u64,
    pub(crate) attempts: Vec<TracedAttempt>,
    /// Whose API the agent that works on it asks, once it has responded.
    pub(crate) provider: Option<&'static str>,
    /// When the last call of each turn of that agent ended.
    pub(crate) turn_ends: BTreeMap<usize, u64>,
}

/// An attempt at a call.
#[derive(Debug)]
pub(crate) struct TracedAttempt {
    pub(crate) started_ms: u64,
    /// How it failed and when, if another attempt followed.
    pub(crate) failure: Option<(Status, u64)>,
}

/// The end of a call.
#[derive(Debug)]
pub(crate) struct TracedEnd {
    pub(crate) at_ms: u64,
    pub(crate) status: Status,
    is_error: bool,
    /// What the model read; empty unless content is captured.
    pub(crate) output: String,
    /// What the agent that worked on it used.
    pub(crate) agent: Option<AgentUsage>,
}

impl TracedCall {
    /// Returns when it began to run, if it did.
    pub(crate) fn started_ms(&self) -> Option<u64> {
        self.attempts.first().map(|attempt| attempt.started_ms)
    }
}

impl TracedEnd {
    /// Returns how the call failed, if it did.
    pub(crate) fn error(&self) -> Option<String> {
        self.is_error.then(|| self.status.to_string())
    }
}

/// The calls that have no result yet.
pub(crate) struct LiveCalls {
    pub(crate) mask: Arc<Mask>,
    /// Inputs and results are kept.
    captures_content: bool,
    calls: HashMap<CallKey, TracedCall>,
}

impl LiveCalls {
    pub(crate) fn new(mask: Arc<Mask>, captures_content: bool) -> Self {
        Self {
            mask,
            captures_content,
            calls: HashMap::new(),
        }
    }

    /// Adds a call that was queued or rejected.
    pub(crate) fn add(&mut self, checked: &CheckedCall, batch: Option<usize>, at_ms: u64) {
        let call = CallRef::new(&checked.call, batch);
        let traced = TracedCall {
            tool_use_id: self.mask.apply(&call.tool_use_id).into_owned(),
            tool_name: self.mask.apply(&call.tool_name).into_owned(),
            path: call.path(),
            batch,
            input: self.input_text(checked),
            requested_ms: at_ms,
            attempts: Vec::new(),
            provider: None,
            turn_ends: BTreeMap::new(),
        };
        self.calls.insert(call.key(), traced);
    }

    /// Adds the start of an attempt.
    pub(crate) fn start(&mut self, call: &CallRef, at_ms: u64) {
        if let Some(call) = self.calls.get_mut(&call.key()) {
            call.attempts.push(TracedAttempt {
                started_ms: at_ms,
                failure: None,
            });
        }
    }

    /// Sets how the last attempt failed.
    pub(crate) fn fail_attempt(&mut self, call: &CallRef, outcome: &Outcome, at_ms: u64) {
        let call = self.calls.get_mut(&call.key());
        if let Some(last) = call.and_then(|call| call.attempts.last_mut()) {
            last.failure = Some((outcome.status(), at_ms));
        }
    }

    /// Notes whose API the agent that works on a call asks. Returns the call.
    pub(crate) fn respond(
        &mut self,
        call: &CallRef,
        provider: &'static str,
    ) -> Option<&TracedCall> {
        let responding = self.calls.get_mut(&call.key())?;
        responding.provider = Some(provider);
        Some(responding)
    }

    /// Removes a call that has ended, and returns it with its end, unless it ended in an earlier run.
    pub(crate) fn finish(
        &mut self,
        call: &CallRef,
        (outcome, answer): (&Outcome, &CallAnswer),
        agent: Option<&AgentUsage>,
        at_ms: u64,
    ) -> Option<(TracedCall, TracedEnd)> {
        let traced = self.calls.remove(&call.key())?;
        if let Some(agent) = call.parent.as_ref()
            && let Some(agent) = self.calls.get_mut(&agent.key())
        {
            let end = agent.turn_ends.entry(call.turn).or_default();
            *end = at_ms.max(*end);
        }
        let output = if self.captures_content {
            let content = to_json(&MaskedContent(&answer.content, &self.mask));
            keep_beginning(content_text(&content))
        } else {
            String::new()
        };
        let end = TracedEnd {
            at_ms,
            status: outcome.status(),
            is_error: answer.is_error,
            output,
            agent: agent.cloned(),
        };
        (!outcome.is_restored()).then_some((traced, end))
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
