//! `--events`: events as JSON lines, one object per event.
//!
//! Every event has `type` and `timestamp` (milliseconds since 1970). Events of a turn have `turn`, those of a server
//! `server`. Events of a call also have `tool_use_id` and `tool_name`, and, as their last member, `state`: what is known
//! of the call so far.
//!
//! ```text
//! {"state":"doing","tip":"halfway","progress":0.5,"params":{"path":"a"},"result":"…"}
//! ```
//!
//! `state` goes from `wait` to `doing`, then `success` or `error`; `params` is the input, `result` is what the model
//! gets. A member appears once it is known and stays, except that `tip` and `progress` last only as long as their
//! attempt. `tool_completed` and `tool_error` also have `status`, the same word as in the session log.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::events::event_line::{CallSnapshots, EventLine, ServerLine};
use crate::output::{BackgroundWriter, Barrier};
use crate::terminal::{PROBING_LABEL, call_caption};
use redact::Mask;
use toolq_core::json::to_json_line;
use toolq_core::os::Clock;
use toolq_core::text::to_millis;
use toolq_core::types::{
    Approval, CallAnswer, CallRef, CheckedCall, Event, EventSink, MaskedText, Outcome, Tool,
};
use toolq_log::records::{ServerEndRecord, ServerStartRecord};

/// How long to wait at the end of a run for the reader of the events.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// How much is buffered for a slow reader before the rest is dropped.
const MAX_PENDING_BYTES: usize = 16 << 20;

fn too_slow() -> io::Error {
    io::Error::other("the reader is too slow")
}

/// Writes events as NDJSON.
pub struct NdjsonSink {
    writer: BackgroundWriter,
    mask: Arc<Mask>,
    clock: Clock,
    calls: CallSnapshots,
}

impl NdjsonSink {
    /// Starts writing to `output` on a background thread.
    ///
    /// # Errors
    /// The thread can't be started.
    pub fn new(
        mut output: Box<dyn Write + Send>,
        mask: Arc<Mask>,
        clock: Clock,
    ) -> io::Result<Self> {
        Ok(Self {
            writer: BackgroundWriter::start("events", move |lines| {
                output.write_all(lines)?;
                output.flush()
            })?,
            calls: CallSnapshots::new(Arc::clone(&mask)),
            mask,
            clock,
        })
    }

    /// Lets the events that follow wait for this, without blocking.
    pub(crate) fn wait_for(&self, barrier: Barrier) {
        self.writer.wait_for(barrier);
    }

    /// Closes the stream. Returns a warning if the reader missed events.
    pub fn finish(self) -> Option<String> {
        self.close(CLOSE_TIMEOUT)
    }

    fn close(self, timeout: Duration) -> Option<String> {
        if !self.writer.wait_until_written(timeout) {
            self.writer.set_error(too_slow());
        }
        let error = self.writer.error()?;
        Some(format!(
            "the rest of the events could not be written: {error}"
        ))
    }

    /// Handles what happens to an agent itself. What happens to its calls is like for any other call.
    fn handle_agent_event(&mut self, event: &Event<'_>) {
        match event {
            Event::AgentStarted { call, agent } => {
                self.write_agent_event(call, agent, EventLine::new("agent_started"));
            }
            Event::AgentProgress {
                call,
                agent,
                turn,
                max_turns,
            } => self.on_agent_progress(call, agent, *turn, *max_turns),
            Event::AgentCompleted {
                call,
                agent,
                duration,
            } => {
                let line = EventLine {
                    duration_ms: Some(to_millis(*duration)),
                    ..EventLine::new("agent_completed")
                };
                self.write_agent_event(call, agent, line);
            }
            _ => {}
        }
    }

    /// Writes an event of a call with its state.
    fn write_call_event(&self, call: &CallRef, line: EventLine<'_>) {
        self.write_line(line.with_call(call, self.calls.state(call), &self.mask));
    }

    fn handle_server_event(&self, event: &Event<'_>) {
        match event {
            Event::ServerStarted(start) => {
                let record = ServerStartRecord::new(start, &self.mask);
                self.write_server_line("server_started", record);
            }
            Event::ServerEnded(end) => {
                let record = ServerEndRecord::new(end, &self.mask);
                self.write_server_line("server_ended", record);
            }
            _ => {}
        }
    }

    fn write_server_line(&self, kind: &'static str, record: impl Serialize) {
        self.send_json(&ServerLine {
            kind,
            timestamp: self.clock.now_ms(),
            record,
        });
    }

    fn write_line(&self, line: EventLine<'_>) {
        let timestamp = self.clock.now_ms();
        self.send_json(&EventLine { timestamp, ..line });
    }

    /// Sends a value as a line. Once one can't be sent, no later one is, so that the reader misses the end of the stream but
    /// never a part in the middle.
    fn send_json(&self, message: &impl Serialize) {
        if self.writer.error().is_some() {
            return;
        }
        match serde_json::to_string(message) {
            Ok(text) if self.writer.pending_bytes() + text.len() <= MAX_PENDING_BYTES => {
                let mut line = to_json_line(&text).into_owned();
                line.push('\n');
                self.writer.send(line.into_bytes());
            }
            Ok(_) => self.writer.set_error(too_slow()),
            Err(error) => self.writer.set_error(error.into()),
        }
    }
}

impl EventSink for NdjsonSink {
    fn handle_event(&mut self, event: &Event<'_>) {
        match event {
            Event::TurnStarted { .. }
            | Event::AgentMessage { .. }
            | Event::ApproverStopped { .. }
            | Event::Probed { .. }
            | Event::Describing { .. }
            | Event::Described { .. }
            | Event::ListingTools { .. }
            | Event::ToolsListed { .. }
            | Event::ToolsChanged(_) => {}
            Event::ServerStarted(_) | Event::ServerEnded(_) => self.handle_server_event(event),
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
                self.write_line(EventLine::batch_started(*turn, *batch, calls, &self.mask));
            }
            Event::ApprovalRequested { call, .. } => {
                self.write_call_event(call, EventLine::new("approval_requested"));
            }
            Event::ApprovalDecided { call, approval } => self.on_approval_decided(call, approval),
            Event::Throttled { call, wait } => {
                self.write_call_event(call, EventLine::throttled(wait, &self.mask));
            }
            Event::Started { call, attempt, .. } => self.on_started(call, *attempt),
            Event::Status {
                call,
                message: tip,
                progress,
                params,
                result,
            } => {
                self.calls.set_shown(call, *params, *result);
                self.on_status(call, tip.map(Cow::Borrowed), *progress);
            }
            Event::Retrying { call, .. } => {
                let label = call_caption::retry_label(event).map(Cow::Owned);
                self.on_status(call, label, None);
                self.calls.reset_attempt(call);
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
                self.calls.remove(call);
            }
            Event::QueueDrained { turn } => self.write_line(EventLine {
                turn: *turn,
                ..EventLine::new("queue_drained")
            }),
            Event::AgentStarted { .. }
            | Event::AgentProgress { .. }
            | Event::AgentCompleted { .. } => self.handle_agent_event(event),
        }
    }
}

// The events of a call, and what each of them makes known about it.

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

    fn on_approval_decided(&mut self, call: &CallRef, approval: &Approval) {
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
    fn write_agent_event(&self, call: &CallRef, agent: &str, line: EventLine<'_>) {
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Sends each write to a channel, and blocks while the channel is full.
    struct ChannelWriter(mpsc::SyncSender<Vec<u8>>);

    impl Write for ChannelWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let sent = self.0.send(bytes.to_vec());
            sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const LONG_TIMEOUT: Duration = Duration::from_hours(1);

    fn sink(sender: mpsc::SyncSender<Vec<u8>>) -> NdjsonSink {
        let output = Box::new(ChannelWriter(sender));
        NdjsonSink::new(output, Arc::default(), Clock::new(|| 7)).unwrap()
    }

    #[test]
    fn a_message_without_a_json_form_ends_the_stream_and_is_no_empty_line() {
        let (sender, receiver) = mpsc::sync_channel(1_000);
        let sink = sink(sender);
        sink.send_json(&"first");
        // JSON has no key that is a list.
        sink.send_json(&std::collections::BTreeMap::from([(vec![1], 2)]));
        sink.send_json(&"never");
        let warning = sink.close(LONG_TIMEOUT).unwrap();
        assert!(warning.contains("key must be a string"), "{warning}");
        let read: Vec<u8> = receiver.iter().flatten().collect();
        assert_eq!(read, b"\"first\"\n");
    }

    /// The run doesn't wait for a slow reader, and warns.
    #[test]
    fn a_stalled_reader_does_not_block_the_writer() {
        let (sender, receiver) = mpsc::sync_channel(0);
        let sink = sink(sender);
        for _ in 0..20 {
            sink.send_json(&"x".repeat(1 << 20));
        }
        let warning = sink.close(Duration::ZERO).unwrap();
        assert!(warning.contains("too slow"), "{warning}");
        drop(receiver);
    }

    /// The run goes on without it.
    #[test]
    fn a_closed_reader_is_reported_once() {
        let (sender, receiver) = mpsc::sync_channel(0);
        drop(receiver);
        let sink = sink(sender);
        sink.send_json(&"1");
        sink.send_json(&"2");
        let warning = sink.close(LONG_TIMEOUT).unwrap();
        assert!(warning.contains("broken pipe"), "{warning}");
    }
}
