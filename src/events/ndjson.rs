//! `--events`: events as JSON lines, one object per event.
//!
//! Every event has `type` and `timestamp` (milliseconds since 1970). Events of a turn have `turn`, those of a server `server`. Events of a call
//! also have `tool_use_id` and `tool_name`, and, as their last member, `state`: what is known of the call so far.
//!
//! ```text
//! {"state":"doing","tip":"halfway","progress":0.5,"params":{"path":"a"},"result":"…"}
//! ```
//!
//! `state` goes from `wait` to `doing`, then `success` or `error`; `params` is the input, `result` is what the model
//! gets. A member appears once it is known and stays, except that `tip` and `progress` last only as long as their
//! attempt. `tool_completed` and `tool_error` also have `status`, the same word as in the session log.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};

use crate::events::background_writer::BackgroundWriter;
use crate::events::event_line::{BatchCallLine, EventCallState, EventLine};
use crate::events::server_line::ServerLine;
use crate::terminal::outcome_label;
use crate::terminal::{CallLabels, PROBING_LABEL, PartialCallLabels};
use redact::Mask;
use toolq_core::os::Clock;
use toolq_core::transcript::complete_partial_json;
use toolq_core::types::{
    CallAnswer, CallKey, CallRef, CheckedCall, EmitError, Event, EventSink, MaskedContent,
    MaskedJson, MaskedText, Outcome, ResultContent, Tool, Verdict,
};

/// How long to wait at the end of a run for the reader of the events.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Writes events as NDJSON.
pub struct NdjsonSink {
    writer: BackgroundWriter,
    mask: Arc<Mask>,
    clock: Clock,
    /// Calls in progress. A call is removed once its result is written, or, for an agent's call, known.
    calls: HashMap<CallKey, CallSnapshot>,
}

/// What is known of a call so far.
#[derive(Default)]
struct CallSnapshot {
    state: EventCallState,
    /// The tip to show when an attempt starts.
    doing: Option<String>,
    /// The input, in case that the tool shows something else.
    input: Option<Box<RawValue>>,
    /// Whether the tool itself said what to show as its result.
    has_own_result: bool,
}

impl CallSnapshot {
    fn new(state: EventCallState, doing: Option<String>) -> Self {
        Self {
            input: state.params.clone(),
            state,
            doing,
            has_own_result: false,
        }
    }
}

impl NdjsonSink {
    /// Starts writing to `output` on a background thread.
    ///
    /// # Errors
    /// The thread can't be started.
    pub fn new(output: Box<dyn Write + Send>, mask: Arc<Mask>, clock: Clock) -> io::Result<Self> {
        Ok(Self {
            writer: BackgroundWriter::new(output)?,
            mask,
            clock,
            calls: HashMap::new(),
        })
    }

    /// Closes the stream. Returns a warning if the reader missed events.
    pub fn finish(self) -> Option<String> {
        self.writer.close(CLOSE_TIMEOUT)
    }

    fn handle_event(&mut self, event: &Event<'_>) {
        match event {
            Event::TurnStarted { .. }
            | Event::AgentMessage { .. }
            | Event::Probed { .. }
            | Event::Describing { .. }
            | Event::Described { .. } => {}
            Event::ServerStarted(start) => self.write_server_line(ServerLine::started(start)),
            Event::ServerEnded(end) => self.write_server_line(ServerLine::ended(end)),
            Event::Probing { call } => {
                self.on_status(call, Some(Cow::Borrowed(PROBING_LABEL)), None);
            }
            Event::PartialInput {
                call,
                tool,
                input_so_far: text,
            } => self.on_partial_input(call, *tool, text),
            Event::Queued { checked, .. } => self.on_queued(checked),
            Event::BatchStarted { turn, batch, calls } => {
                self.on_batch_started(*turn, *batch, calls);
            }
            Event::Started { call, attempt, .. } => self.on_started(call, *attempt),
            Event::Status {
                call,
                message: tip,
                progress,
                params,
                result,
            } => {
                self.set_shown(call, *params, *result);
                self.on_status(call, tip.map(Cow::Borrowed), *progress);
            }
            Event::Retrying { call, .. } => {
                self.on_retrying(call, outcome_label::retry_label(event));
            }
            Event::Finished {
                call,
                outcome,
                answer,
                duration,
                ..
            } => self.on_finished(call, outcome, answer, *duration),
            Event::ResultWritten { call } => {
                self.write_call_event(call, EventLine::new("result_written"));
                self.calls.remove(&call.key());
            }
            Event::QueueDrained { turn } => self.write_line(EventLine {
                turn: *turn,
                ..EventLine::new("queue_drained")
            }),
            Event::AgentStarted { call, agent } => {
                self.write_agent_event(call, agent, EventLine::new("agent_started"));
            }
            Event::AgentProgress {
                call,
                agent,
                turn,
                max_turns,
            } => self.on_agent_progress(call, agent, (*turn, *max_turns)),
            Event::AgentCompleted {
                call,
                agent,
                duration,
            } => {
                let duration_ms = Some(duration_to_ms(*duration));
                let line = EventLine::new("agent_completed");
                self.write_agent_event(
                    call,
                    agent,
                    EventLine {
                        duration_ms,
                        ..line
                    },
                );
            }
        }
    }

    /// Emits the part of an input that has arrived. Its end is held back as long as it could be the start of a secret.
    fn on_partial_input(&mut self, call: &CallRef, tool: Option<&Tool>, text: &str) {
        let known = complete_partial_json(&text[..self.mask.safe_prefix_len(text)]);
        let Some(params) = known.and_then(|known| RawValue::from_string(known).ok()) else {
            return;
        };
        let wait = PartialCallLabels::new(call, tool, params.get()).wait;
        let state = EventCallState {
            phase: "wait",
            tip: wait.map(|tip| self.mask.apply(&tip).into_owned()),
            params: to_raw_value(&MaskedJson(&params, &self.mask)).ok(),
            ..EventCallState::default()
        };
        let doing = None;
        self.calls
            .insert(call.key(), CallSnapshot::new(state, doing));
        let position = Some(call.position);
        self.write_call_event(
            call,
            EventLine {
                position,
                ..EventLine::new("tool_partial")
            },
        );
    }

    fn on_queued(&mut self, checked: &CheckedCall) {
        let raw_input = checked.call.input.as_ref().ok();
        let input = match &checked.verdict {
            Verdict::Accepted(accepted) => Some(&accepted.input),
            Verdict::Rejected(_) => raw_input,
        };
        let labels = CallLabels::new(checked);
        let state = EventCallState {
            phase: "wait",
            tip: labels.wait.map(|tip| self.mask.apply(&tip).into_owned()),
            params: input
                .and_then(|input| to_raw_value(&MaskedJson(input.as_raw(), &self.mask)).ok()),
            ..EventCallState::default()
        };
        let doing = labels.doing.map(|tip| self.mask.apply(&tip).into_owned());
        let call = CallRef::new(&checked.call, None);
        self.calls
            .insert(call.key(), CallSnapshot::new(state, doing));
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
    fn write_agent_event(&self, call: &CallRef, agent: &str, line: EventLine<'_>) {
        let agent_name = Some(MaskedText(agent, &self.mask));
        self.write_call_event(call, EventLine { agent_name, ..line });
    }

    /// Reports that an agent requests a model response. `turn` is the agent's own turn, from 0; it also becomes the tip
    /// if the tool has no `status` text.
    fn on_agent_progress(&mut self, call: &CallRef, agent: &str, (turn, max_turns): (u64, u64)) {
        let known = self.calls.entry(call.key()).or_default();
        if known.doing.is_none() {
            known.state.tip = Some(format!("turn {turn} of at most {max_turns}"));
        }
        let line = EventLine {
            agent_name: Some(MaskedText(agent, &self.mask)),
            max_turns: Some(max_turns),
            ..EventLine::new("agent_progress")
        };
        let line = self.fill_call_members(call, line);
        let turn = usize::try_from(turn).unwrap_or(usize::MAX);
        self.write_line(EventLine { turn, ..line });
    }

    fn on_batch_started(&self, turn: usize, batch: usize, calls: &[CallRef]) {
        let agent = calls.first().and_then(|call| call.parent.as_deref());
        let calls = calls.iter().map(|call| BatchCallLine {
            position: call.position,
            tool_use_id: MaskedText(&call.tool_use_id, &self.mask),
            tool_name: MaskedText(&call.tool_name, &self.mask),
        });
        self.write_line(EventLine {
            turn,
            agent_tool_use_id: agent.map(|agent| MaskedText(&agent.tool_use_id, &self.mask)),
            batch: Some(batch),
            calls: Some(calls.collect()),
            ..EventLine::new("batch_started")
        });
    }

    fn on_started(&mut self, call: &CallRef, attempt: u32) {
        let known = self.calls.entry(call.key()).or_default();
        known.state.phase = "doing";
        known.state.tip.clone_from(&known.doing);
        let attempt = Some(attempt);
        self.write_call_event(
            call,
            EventLine {
                attempt,
                ..EventLine::new("tool_started")
            },
        );
    }

    fn on_status(&mut self, call: &CallRef, tip: Option<Cow<'_, str>>, progress: Option<f64>) {
        let tip = tip.map(|tip| self.mask.apply(&tip).into_owned());
        let known = self.calls.entry(call.key()).or_default();
        known.state.tip = tip.or(known.state.tip.take());
        known.state.progress = progress.or(known.state.progress);
        self.write_call_event(call, EventLine::new("tool_status"));
    }

    /// Sets what the tool itself wants to show as its parameters and its result.
    fn set_shown(&mut self, call: &CallRef, params: Option<&RawValue>, result: Option<&RawValue>) {
        let known = self.calls.entry(call.key()).or_default();
        let masked = |value: &RawValue| to_raw_value(&MaskedJson(value, &self.mask)).ok();
        known.state.params = params.and_then(masked).or(known.state.params.take());
        if let Some(result) = result.and_then(masked) {
            known.state.result = Some(result);
            known.has_own_result = true;
        }
    }

    /// Reports that an attempt failed. The next attempt starts with nothing that this attempt wanted to show.
    fn on_retrying(&mut self, call: &CallRef, label: Option<String>) {
        self.on_status(call, label.map(Cow::Owned), None);
        let known = self.calls.entry(call.key()).or_default();
        known.state.tip.clone_from(&known.doing);
        known.state.progress = None;
        known.state.params.clone_from(&known.input);
        known.state.result = None;
        known.has_own_result = false;
    }

    fn on_finished(
        &mut self,
        call: &CallRef,
        outcome: &Outcome,
        answer: &CallAnswer,
        duration: Duration,
    ) {
        let (success, status) = (!answer.is_error, outcome.status());
        let known = self.calls.entry(call.key()).or_default();
        known.state.phase = if success { "success" } else { "error" };
        if !known.has_own_result {
            known.state.result = to_raw_value(&MaskedContent(&answer.content, &self.mask)).ok();
        }
        let mask = Arc::clone(&self.mask);
        let line = if outcome.is_completed() {
            EventLine {
                duration_ms: Some(duration_to_ms(duration)),
                success: Some(success),
                ..EventLine::new("tool_completed")
            }
        } else {
            EventLine::new("tool_error")
        };
        // A restored result has only the text that the model read.
        let restored = || match &answer.content {
            ResultContent::Text(text) if answer.is_error => Some(text.as_str()),
            _ => None,
        };
        let error = match outcome {
            Outcome::Restored(_) => restored(),
            _ => answer.report.error.as_deref(),
        };
        let recalled = outcome.is_restored().then_some(true);
        self.write_call_event(
            call,
            EventLine {
                status: Some(status),
                recalled,
                error: error.map(|error| MaskedText(error, &mask)),
                ..line
            },
        );
        if call.parent.is_some() {
            self.calls.remove(&call.key());
        }
    }

    /// Writes an event of a call with its state.
    fn write_call_event(&self, call: &CallRef, line: EventLine<'_>) {
        self.write_line(self.fill_call_members(call, line));
    }

    fn fill_call_members<'a>(&'a self, call: &'a CallRef, line: EventLine<'a>) -> EventLine<'a> {
        let agent = call.parent.as_deref();
        EventLine {
            turn: call.turn,
            tool_use_id: Some(MaskedText(&call.tool_use_id, &self.mask)),
            tool_name: Some(MaskedText(&call.tool_name, &self.mask)),
            agent_tool_use_id: agent.map(|agent| MaskedText(&agent.tool_use_id, &self.mask)),
            state: self.calls.get(&call.key()).map(|call| &call.state),
            ..line
        }
    }

    fn write_server_line(&self, line: ServerLine<'_>) {
        let line = line.finished(self.clock.now_ms(), &self.mask);
        self.writer.enqueue_json(&line);
    }

    fn write_line(&self, line: EventLine<'_>) {
        let timestamp = self.clock.now_ms();
        self.writer.enqueue_json(&EventLine { timestamp, ..line });
    }
}

fn duration_to_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl EventSink for NdjsonSink {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        for event in events {
            self.handle_event(event);
        }
        Ok(())
    }
}
