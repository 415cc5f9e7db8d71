//! `--events`: the stream as JSON lines, one object an event.
//!
//! Every event has `type` and `timestamp` (milliseconds since 1970); one of a turn has `turn`; one of a call has
//! `tool_use_id` and `tool_name` too, and at its end `state`, what is known of the call so far:
//!
//! ```text
//! {"state":"doing","tip":"half way","progress":0.5,"params":{"path":"a"},"result":"…"}
//! ```
//!
//! `state` goes `wait`, `doing`, then `success` or `error`; `params` is the input, `result` what the model reads. A member
//! appears when it is known, and stays; `tip` and `progress` stay as long as the attempt that they are of. With `tool_completed` and `tool_error` comes `status`, the word of the log.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};

use crate::events::background_writer::Outbox;
use crate::events::line::{CallLine, Line, State};
use crate::terminal::outcome_label;
use crate::terminal::{PROBING, Words};
use redact::Mask;
use toolq_core::json::json_line;
use toolq_core::os::Clock;
use toolq_core::transcript::completed;
use toolq_core::types::{
    Answer, CallKey, CallRef, Checked, Content, Event, MaskedContent, MaskedJson, MaskedText,
    Outcome, Refused, Sink, Verdict,
};

/// How long the end of a run waits for the reader of its events.
const PATIENCE: Duration = Duration::from_secs(2);

/// Writes events to a program.
pub struct EventStream {
    outbox: Outbox,
    mask: Arc<Mask>,
    clock: Clock,
    /// Until the result is written, or, of an agent's own, there.
    calls: HashMap<CallKey, Call>,
}

/// What is known of a call.
#[derive(Default)]
struct Call {
    state: State,
    /// The tip that comes with its start.
    doing: Option<String>,
}

impl EventStream {
    /// Writes to `reader` from now on, on a thread of its own.
    ///
    /// # Errors
    /// There can be no thread.
    pub fn new(reader: Box<dyn Write + Send>, mask: Arc<Mask>, clock: Clock) -> io::Result<Self> {
        Ok(Self {
            outbox: Outbox::new(reader)?,
            mask,
            clock,
            calls: HashMap::new(),
        })
    }

    /// Ends the stream. Where its reader missed something, a warning for people.
    pub fn finish(self) -> Option<String> {
        self.outbox.close(PATIENCE)
    }

    fn hear(&mut self, event: &Event<'_>) {
        match event {
            Event::TurnStarted { .. }
            | Event::AgentMessage { .. }
            | Event::Probed { .. }
            | Event::Describing { .. }
            | Event::Described { .. } => {}
            Event::Probing { call } => self.status(call, Some(Cow::Borrowed(PROBING)), None),
            Event::Part { call, text } => self.part(call, text),
            Event::Queued { checked, .. } => self.queued(checked),
            Event::BatchStarted { turn, batch, calls } => self.batch(*turn, *batch, calls),
            Event::Started { call, attempt, .. } => self.started(call, *attempt),
            Event::Status {
                call,
                tip,
                progress,
            } => self.status(call, tip.map(Cow::Borrowed), *progress),
            Event::Retrying { call, .. } => self.retrying(call, outcome_label::retry_words(event)),
            Event::Finished {
                call,
                outcome,
                answer,
                duration,
                ..
            } => self.finished(call, outcome, answer, *duration),
            Event::ResultWritten { call } => {
                self.send(call, Line::of("result_written"));
                self.calls.remove(&call.key());
            }
            Event::QueueDrained { turn } => self.put(Line {
                turn: *turn,
                ..Line::of("queue_drained")
            }),
            Event::AgentStarted { call, agent } => {
                self.of_agent(call, agent, Line::of("agent_started"));
            }
            Event::AgentProgress {
                call,
                agent,
                turn,
                max_turns,
            } => self.progress(call, agent, (*turn, *max_turns)),
            Event::AgentCompleted {
                call,
                agent,
                duration,
            } => {
                let duration_ms = Some(ms(*duration));
                let line = Line::of("agent_completed");
                self.of_agent(
                    call,
                    agent,
                    Line {
                        duration_ms,
                        ..line
                    },
                );
            }
        }
    }

    /// Shows what is known of an input by now. Its end is held back as long as a secret may begin there.
    fn part(&mut self, call: &CallRef, text: &str) {
        let known = completed(&text[..self.mask.safe(text)]);
        let Some(params) = known.and_then(|known| RawValue::from_string(known).ok()) else {
            return;
        };
        let state = State {
            phase: "wait",
            params: to_raw_value(&MaskedJson(&params, &self.mask)).ok(),
            ..State::default()
        };
        let doing = None;
        self.calls.insert(call.key(), Call { state, doing });
        let position = Some(call.position);
        self.send(
            call,
            Line {
                position,
                ..Line::of("tool_partial")
            },
        );
    }

    fn queued(&mut self, checked: &Checked) {
        let asked = checked.call.input.as_ref().ok();
        let input = match &checked.verdict {
            Verdict::Accepted(accepted) => Some(&accepted.input),
            Verdict::Rejected(_) => asked,
        };
        let words = Words::of(checked);
        let state = State {
            phase: "wait",
            tip: words.wait.map(|tip| self.mask.text(&tip).into_owned()),
            params: input.and_then(|input| to_raw_value(&MaskedJson(input.raw(), &self.mask)).ok()),
            ..State::default()
        };
        let doing = words.doing.map(|tip| self.mask.text(&tip).into_owned());
        let call = CallRef::new(&checked.call, None);
        self.calls.insert(call.key(), Call { state, doing });
        let position = Some(call.position);
        self.send(
            &call,
            Line {
                position,
                ..Line::of("tool_queued")
            },
        );
    }

    /// An event of an agent: `turn` is that of the call that it works on.
    fn of_agent(&self, call: &CallRef, agent: &str, line: Line<'_>) {
        let agent_name = Some(MaskedText(agent, &self.mask));
        self.send(call, Line { agent_name, ..line });
    }

    /// An agent asks its model: `turn` is the agent's own, from 1. It is said in words where the author has none.
    fn progress(&mut self, call: &CallRef, agent: &str, (turn, max_turns): (u64, u64)) {
        let known = self.calls.entry(call.key()).or_default();
        if known.doing.is_none() {
            known.state.tip = Some(format!("turn {turn} of {max_turns}"));
        }
        let line = Line {
            agent_name: Some(MaskedText(agent, &self.mask)),
            max_turns: Some(max_turns),
            ..Line::of("agent_progress")
        };
        let line = self.of_call(call, line);
        let turn = usize::try_from(turn).unwrap_or(usize::MAX);
        self.put(Line { turn, ..line });
    }

    fn batch(&self, turn: usize, batch: usize, calls: &[CallRef]) {
        let agent = calls.first().and_then(|call| call.within.as_deref());
        let calls = calls.iter().map(|call| CallLine {
            position: call.position,
            tool_use_id: MaskedText(&call.tool_use_id, &self.mask),
            tool_name: MaskedText(&call.tool_name, &self.mask),
        });
        self.put(Line {
            turn,
            agent_tool_use_id: agent.map(|agent| MaskedText(&agent.tool_use_id, &self.mask)),
            batch: Some(batch),
            calls: Some(calls.collect()),
            ..Line::of("batch_started")
        });
    }

    fn started(&mut self, call: &CallRef, attempt: u32) {
        let known = self.calls.entry(call.key()).or_default();
        known.state.phase = "doing";
        known.state.tip.clone_from(&known.doing);
        let attempt = Some(attempt);
        self.send(
            call,
            Line {
                attempt,
                ..Line::of("tool_started")
            },
        );
    }

    fn status(&mut self, call: &CallRef, tip: Option<Cow<'_, str>>, progress: Option<f64>) {
        let tip = tip.map(|tip| self.mask.text(&tip).into_owned());
        let known = self.calls.entry(call.key()).or_default();
        known.state.tip = tip.or(known.state.tip.take());
        known.state.progress = progress.or(known.state.progress);
        self.send(call, Line::of("tool_status"));
    }

    /// Says that an attempt failed. These are words of now: the next attempt begins without them, and without what the
    /// last one said.
    fn retrying(&mut self, call: &CallRef, words: Option<String>) {
        self.status(call, words.map(Cow::Owned), None);
        let known = self.calls.entry(call.key()).or_default();
        known.state.tip.clone_from(&known.doing);
        known.state.progress = None;
    }

    fn finished(&mut self, call: &CallRef, outcome: &Outcome, answer: &Answer, duration: Duration) {
        let success = !answer.is_error;
        let known = self.calls.entry(call.key()).or_default();
        known.state.phase = if success { "success" } else { "error" };
        known.state.result = to_raw_value(&MaskedContent(&answer.content, &self.mask)).ok();
        let mask = Arc::clone(&self.mask);
        let line = if outcome.is_completed() {
            Line {
                duration_ms: Some(ms(duration)),
                success: Some(success),
                ..Line::of("tool_completed")
            }
        } else {
            let error = match &answer.content {
                Content::Text(text) => text,
                Content::Blocks(_) => outcome.status(),
            };
            Line {
                error: Some(MaskedText(error, &mask)),
                ..Line::of("tool_error")
            }
        };
        let status = Some(outcome.status());
        let recalled = outcome.is_recalled().then_some(true);
        self.send(
            call,
            Line {
                status,
                recalled,
                ..line
            },
        );
        if call.within.is_some() {
            self.calls.remove(&call.key());
        }
    }

    /// Sends an event of a call, with what is known of it.
    fn send(&self, call: &CallRef, line: Line<'_>) {
        self.put(self.of_call(call, line));
    }

    fn of_call<'a>(&'a self, call: &'a CallRef, line: Line<'a>) -> Line<'a> {
        let agent = call.within.as_deref();
        Line {
            turn: call.turn,
            tool_use_id: Some(MaskedText(&call.tool_use_id, &self.mask)),
            tool_name: Some(MaskedText(&call.tool_name, &self.mask)),
            agent_tool_use_id: agent.map(|agent| MaskedText(&agent.tool_use_id, &self.mask)),
            state: self.calls.get(&call.key()).map(|call| &call.state),
            ..line
        }
    }

    fn put(&self, line: Line<'_>) {
        let timestamp = self.clock.ms();
        // Texts and numbers: there is nothing in it that JSON has no form for.
        let text = serde_json::to_string(&Line { timestamp, ..line }).unwrap_or_default();
        let mut text = json_line(&text).into_owned();
        text.push('\n');
        self.outbox.put(text.as_bytes());
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Sink for EventStream {
    fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
        for event in events {
            self.hear(event);
        }
        Ok(())
    }
}
