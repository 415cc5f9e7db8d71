//! What the events so far say about each call: the `state` of the next event.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};

use crate::events::event_line::EventCallState;
use crate::terminal::{CallLabels, PartialCallLabels};
use redact::Mask;
use toolq_core::json::Input;
use toolq_core::transcript::complete_partial_json;
use toolq_core::types::{
    CallAnswer, CallKey, CallRef, CheckedCall, MaskedContent, MaskedJson, Tool, Verdict,
};

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
