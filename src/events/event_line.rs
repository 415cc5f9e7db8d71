//! The JSON of an event, and of what is known of its call so far.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::terminal::{CallLabels, PartialCallLabels};
use redact::Mask;
use toolq_core::json::Input;
use toolq_core::schedule::StartWait;
use toolq_core::text::to_millis;
use toolq_core::transcript::complete_partial_json;
use toolq_core::types::{
    CallAnswer, CallKey, CallRef, CheckedCall, MaskedContent, MaskedJson, MaskedText, Outcome,
    ResultContent, Status, Tool, Verdict,
};

/// The `state` of a call in an event.
#[serde_with::skip_serializing_none]
#[derive(Default, Serialize)]
pub(crate) struct EventCallState {
    #[serde(rename = "state")]
    pub(crate) phase: &'static str,
    pub(crate) tip: Option<String>,
    pub(crate) progress: Option<f64>,
    pub(crate) params: Option<Box<RawValue>>,
    pub(crate) result: Option<Box<RawValue>>,
}

/// The members of all events, in output order.
#[serde_with::skip_serializing_none]
#[derive(Default, Serialize)]
pub(crate) struct EventLine<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) timestamp: u64,
    pub(crate) turn: usize,
    pub(crate) tool_use_id: Option<MaskedText<'a>>,
    pub(crate) tool_name: Option<MaskedText<'a>>,
    /// The agent call that this call belongs to.
    pub(super) agent_tool_use_id: Option<MaskedText<'a>>,
    pub(crate) agent_name: Option<MaskedText<'a>>,
    pub(crate) max_turns: Option<u64>,
    pub(crate) position: Option<usize>,
    pub(crate) batch: Option<usize>,
    pub(crate) calls: Option<Vec<BatchCallLine<'a>>>,
    pub(crate) attempt: Option<u32>,
    /// Whether a call was approved: `yes` or `no`.
    pub(crate) decision: Option<&'static str>,
    /// The key that makes a call wait for its turn: `rate` or `max_parallel`.
    pub(crate) limit: Option<&'static str>,
    /// Whose limit that is: the name of the tool, `server NAME` or `host NAME`.
    pub(super) limited_by: Option<String>,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) success: Option<bool>,
    pub(crate) status: Option<Status>,
    /// The result is from an earlier run, restored from the session log.
    pub(crate) recalled: Option<bool>,
    pub(crate) error: Option<MaskedText<'a>>,
    pub(crate) state: Option<&'a EventCallState>,
}

/// A call of a batch.
#[derive(Serialize)]
pub(crate) struct BatchCallLine<'a> {
    pub(crate) position: usize,
    pub(crate) tool_use_id: MaskedText<'a>,
    pub(crate) tool_name: MaskedText<'a>,
}

impl<'a> EventLine<'a> {
    /// Creates an event that has only a type.
    pub(crate) fn new(kind: &'static str) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }

    /// Creates the event of a batch whose calls may run together.
    pub(crate) fn batch_started(
        turn: usize,
        batch: usize,
        calls: &'a [CallRef],
        mask: &'a Mask,
    ) -> Self {
        let agent = calls.first().and_then(|call| call.parent.as_deref());
        let calls = calls.iter().map(|call| BatchCallLine {
            position: call.position,
            tool_use_id: MaskedText(&call.tool_use_id, mask),
            tool_name: MaskedText(&call.tool_name, mask),
        });
        Self {
            turn,
            agent_tool_use_id: agent.map(|agent| MaskedText(&agent.tool_use_id, mask)),
            batch: Some(batch),
            calls: Some(calls.collect()),
            ..Self::new("batch_started")
        }
    }

    /// Creates the event of a call that waits for its turn, without the members that all events of a call have.
    pub(crate) fn throttled(wait: &StartWait, mask: &Mask) -> Self {
        Self {
            limit: Some(wait.limit_name()),
            limited_by: Some(mask.apply(&wait.subject.to_string()).into_owned()),
            ..Self::new("tool_throttled")
        }
    }

    /// Creates the event of a call that has ended, without the members that all events of a call have.
    pub(crate) fn finished(
        outcome: &Outcome,
        answer: &'a CallAnswer,
        duration: Duration,
        mask: &'a Mask,
    ) -> Self {
        let line = if outcome.is_completed() {
            Self {
                duration_ms: Some(to_millis(duration)),
                success: Some(!answer.is_error),
                ..Self::new("tool_completed")
            }
        } else {
            Self::new("tool_error")
        };
        let error = match (outcome, &answer.content) {
            // A restored result has only the text that the model read.
            (Outcome::Restored(_), ResultContent::Text(text)) => {
                answer.is_error.then_some(text.as_str())
            }
            (Outcome::Restored(_), _) => None,
            _ => answer.report.error.as_deref(),
        };
        Self {
            status: Some(outcome.status()),
            recalled: outcome.is_restored().then_some(true),
            error: error.map(|error| MaskedText(error, mask)),
            ..line
        }
    }

    /// Adds the members that all events of a call have.
    pub(crate) fn with_call(
        self,
        call: &'a CallRef,
        state: Option<&'a EventCallState>,
        mask: &'a Mask,
    ) -> Self {
        let agent = call.parent.as_deref();
        Self {
            turn: call.turn,
            tool_use_id: Some(MaskedText(&call.tool_use_id, mask)),
            tool_name: Some(MaskedText(&call.tool_name, mask)),
            agent_tool_use_id: agent.map(|agent| MaskedText(&agent.tool_use_id, mask)),
            state,
            ..self
        }
    }
}

// The JSON of an event that belongs to no turn: one of an MCP server.

/// A server is ready, or has ended: what the session log says of it.
#[derive(Serialize)]
pub(crate) struct ServerLine<R> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) timestamp: u64,
    #[serde(flatten)]
    pub(crate) record: R,
}

// What the events so far say about each call: the `state` of the next event.

/// The calls in progress, without secrets.
pub(crate) struct CallSnapshots {
    mask: Arc<Mask>,
    calls: HashMap<CallKey, CallSnapshot>,
}

/// What is known of a call so far.
#[derive(Default)]
struct CallSnapshot {
    state: EventCallState,
    /// The tip to show when an attempt starts.
    doing: Option<String>,
    /// The input, in case the tool shows something else.
    input: Option<Box<RawValue>>,
    /// Whether the tool itself said what to show as its result.
    has_own_result: bool,
}

impl CallSnapshots {
    pub(crate) fn new(mask: Arc<Mask>) -> Self {
        Self {
            mask,
            calls: HashMap::new(),
        }
    }

    /// Returns the state of a call, or `None` before its first event and after its last.
    pub(crate) fn state(&self, call: &CallRef) -> Option<&EventCallState> {
        self.calls.get(&call.key()).map(|call| &call.state)
    }

    /// Forgets a call, which has no more events.
    pub(crate) fn remove(&mut self, call: &CallRef) {
        self.calls.remove(&call.key());
    }

    /// Sets the part of an input that has arrived. Its end is held back as long as it could be the start of a secret.
    ///
    /// Returns false if there is nothing to show yet.
    pub(crate) fn set_partial_input(
        &mut self,
        call: &CallRef,
        tool: Option<&Tool>,
        text: &str,
    ) -> bool {
        let known = complete_partial_json(&text[..self.mask.safe_prefix_len(text)]);
        let Some(params) = known.and_then(|known| RawValue::from_string(known).ok()) else {
            return false;
        };
        let wait = PartialCallLabels::new(call, tool, params.get()).wait;
        self.insert_waiting(call, wait, Some(&params), None);
        true
    }

    /// Sets the input of a call that waits to start.
    pub(crate) fn set_queued(&mut self, call: &CallRef, checked: &CheckedCall) {
        let raw_input = checked.call.input.as_ref().ok();
        let input = match &checked.verdict {
            Verdict::Accepted(accepted) => Some(&accepted.input),
            Verdict::Rejected(_) => raw_input,
        };
        let labels = CallLabels::new(checked.request());
        let doing = labels.doing.map(|tip| self.mask.apply(&tip).into_owned());
        let input = input.map(Input::as_raw);
        self.insert_waiting(call, labels.wait, input, doing);
    }

    fn insert_waiting(
        &mut self,
        call: &CallRef,
        wait: Option<String>,
        input: Option<&RawValue>,
        doing: Option<String>,
    ) {
        let state = EventCallState {
            phase: "wait",
            tip: wait.map(|tip| self.mask.apply(&tip).into_owned()),
            params: input.and_then(|input| self.masked(input)),
            ..EventCallState::default()
        };
        let snapshot = CallSnapshot {
            input: state.params.clone(),
            state,
            doing,
            has_own_result: false,
        };
        self.calls.insert(call.key(), snapshot);
    }

    /// Sets that an attempt has started.
    pub(crate) fn set_started(&mut self, call: &CallRef) {
        let known = self.entry(call);
        known.state.phase = "doing";
        known.state.tip.clone_from(&known.doing);
    }

    /// Sets the tip and the progress that a call reports. What it doesn't report stays as it is.
    pub(crate) fn set_status(
        &mut self,
        call: &CallRef,
        tip: Option<Cow<'_, str>>,
        progress: Option<f64>,
    ) {
        let tip = tip.map(|tip| self.mask.apply(&tip).into_owned());
        let known = self.entry(call);
        known.state.tip = tip.or(known.state.tip.take());
        known.state.progress = progress.or(known.state.progress);
    }

    /// Sets the tip of a call whose tool has no `status` text.
    pub(crate) fn set_default_tip(&mut self, call: &CallRef, tip: String) {
        let known = self.entry(call);
        if known.doing.is_none() {
            known.state.tip = Some(tip);
        }
    }

    /// Sets what the tool itself wants to show as its parameters and its result.
    pub(crate) fn set_shown(
        &mut self,
        call: &CallRef,
        params: Option<&RawValue>,
        result: Option<&RawValue>,
    ) {
        let params = params.and_then(|params| self.masked(params));
        let result = result.and_then(|result| self.masked(result));
        let known = self.entry(call);
        known.state.params = params.or(known.state.params.take());
        if let Some(result) = result {
            known.state.result = Some(result);
            known.has_own_result = true;
        }
    }

    /// Drops what a failed attempt wanted to show, so that the next attempt starts without it.
    pub(crate) fn reset_attempt(&mut self, call: &CallRef) {
        let known = self.entry(call);
        known.state.tip.clone_from(&known.doing);
        known.state.progress = None;
        known.state.params.clone_from(&known.input);
        known.state.result = None;
        known.has_own_result = false;
    }

    /// Sets that a call has ended. Its answer is shown as its result, unless the tool showed another.
    pub(crate) fn set_finished(&mut self, call: &CallRef, answer: &CallAnswer) {
        let content = to_raw_value(&MaskedContent(&answer.content, &self.mask)).ok();
        let known = self.entry(call);
        known.state.phase = if answer.is_error { "error" } else { "success" };
        if !known.has_own_result {
            known.state.result = content;
        }
    }

    fn entry(&mut self, call: &CallRef) -> &mut CallSnapshot {
        self.calls.entry(call.key()).or_default()
    }

    fn masked(&self, json: &RawValue) -> Option<Box<RawValue>> {
        to_raw_value(&MaskedJson(json, &self.mask)).ok()
    }
}
