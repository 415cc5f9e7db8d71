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
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use serde::Serialize;

use crate::events::event_line::{CallSnapshots, EventLine, ServerLine};
use crate::terminal::{PROBING_LABEL, call_caption};
use redact::Mask;
use toolq_core::json::to_json_line;
use toolq_core::os::Clock;
use toolq_core::text::to_millis;
use toolq_core::types::{
    Approval, CallAnswer, CallRef, CheckedCall, EmitError, Event, EventSink, MaskedText, Outcome,
    Tool,
};

/// How long to wait at the end of a run for the reader of the events.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

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
    pub fn new(output: Box<dyn Write + Send>, mask: Arc<Mask>, clock: Clock) -> io::Result<Self> {
        Ok(Self {
            writer: BackgroundWriter::new(output)?,
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
        self.writer.close(CLOSE_TIMEOUT)
    }

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
                self.write_line(EventLine::batch_started(*turn, *batch, calls, &self.mask));
            }
            Event::ApprovalRequested { call, .. } => {
                self.write_call_event(call, EventLine::new("approval_requested"));
            }
            Event::ApprovalDecided { call, approval } => self.on_approval_decided(call, approval),
            Event::Throttled { call, wait } => {
                let line = EventLine::throttled(wait, &self.mask);
                self.write_call_event(call, line);
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

    fn write_server_line(&self, line: ServerLine<'_>) {
        let line = line.finished(self.clock.now_ms(), &self.mask);
        self.writer.enqueue_json(&line);
    }

    fn write_line(&self, line: EventLine<'_>) {
        let timestamp = self.clock.now_ms();
        self.writer.enqueue_json(&EventLine { timestamp, ..line });
    }
}

impl EventSink for NdjsonSink {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        for event in events {
            self.handle_event(event);
        }
        Ok(())
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

// Writes bytes on a background thread, so that a slow reader doesn't slow down the run.

/// How much is buffered for a slow reader before messages are dropped.
const MAX_PENDING_BYTES: usize = 16 << 20;

/// A writer whose output may block: a background thread writes the queued messages.
pub(crate) struct BackgroundWriter {
    queue: Arc<WriteQueue>,
}

#[derive(Default)]
struct WriteQueue {
    state: Mutex<WriteQueueState>,
    changed: Condvar,
}

/// What blocks until the messages after it may be written.
pub(crate) type Barrier = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct WriteQueueState {
    pending: Vec<u8>,
    /// Each with the number of pending bytes before it.
    barriers: VecDeque<(usize, Barrier)>,
    /// No more messages will be queued.
    closed: bool,
    /// The thread has finished.
    done: bool,
    /// Number of messages dropped because the buffer was full or the output had failed.
    dropped_messages: u64,
    /// The error of the output.
    error: Option<io::Error>,
}

impl BackgroundWriter {
    /// Starts the thread that writes to `output`.
    ///
    /// # Errors
    /// The thread can't be started.
    pub(super) fn new(output: Box<dyn Write + Send>) -> io::Result<Self> {
        let shared = Arc::new(WriteQueue::default());
        let worker_queue = Arc::clone(&shared);
        thread::Builder::new()
            .name("events".to_owned())
            .spawn(move || worker_queue.write_until_closed(output))?;
        Ok(Self { queue: shared })
    }

    /// Queues a message without blocking. Once a message is dropped, all later ones are too, so that the reader misses
    /// the end of the stream but never a part in the middle.
    fn enqueue(&self, message: &[u8]) {
        let mut state = self.queue.state.lock();
        let full = state.pending.len() + message.len() > MAX_PENDING_BYTES;
        if full || state.dropped_messages > 0 || state.error.is_some() {
            state.dropped_messages += 1;
            return;
        }
        state.pending.extend_from_slice(message);
        self.queue.changed.notify_all();
    }

    /// Lets the messages that follow wait for this, without blocking.
    pub(super) fn wait_for(&self, barrier: Barrier) {
        let mut state = self.queue.state.lock();
        let before = state.pending.len();
        state.barriers.push_back((before, barrier));
        self.queue.changed.notify_all();
    }

    /// Queues a value as a line of JSON. If it has no JSON form, the stream ends before it: an empty line would be no
    /// message, and a missing one wouldn't be noticed.
    pub(super) fn enqueue_json(&self, message: &impl Serialize) {
        match serde_json::to_string(message) {
            Ok(text) => {
                let mut line = to_json_line(&text).into_owned();
                line.push('\n');
                self.enqueue(line.as_bytes());
            }
            Err(error) => {
                self.queue.state.lock().error.get_or_insert(error.into());
            }
        }
    }

    /// Closes the stream and waits up to `timeout` for the pending messages to be written. Returns a warning if some
    /// weren't.
    pub(super) fn close(self, timeout: Duration) -> Option<String> {
        let mut state = self.queue.state.lock();
        state.closed = true;
        self.queue.changed.notify_all();
        self.queue
            .changed
            .wait_while_for(&mut state, |state| !state.done, timeout);
        match (&state.error, state.done, state.dropped_messages) {
            (Some(error), _, _) => Some(format!(
                "the rest of the events could not be written: {error}"
            )),
            (None, true, 0) => None,
            _ => Some("the rest of the events was dropped: the reader is too slow".to_owned()),
        }
    }
}

impl WriteQueue {
    /// Writes queued messages until the queue is closed and empty, or the output fails.
    fn write_until_closed(&self, mut output: Box<dyn Write + Send>) {
        while let Some(step) = self.wait_for_step() {
            let bytes = match step {
                WriteStep::Wait(barrier) => {
                    barrier();
                    continue;
                }
                WriteStep::Write(bytes) => bytes,
            };
            if let Err(error) = output.write_all(&bytes).and_then(|()| output.flush()) {
                self.state.lock().error = Some(error);
                break;
            }
        }
        self.state.lock().done = true;
        self.changed.notify_all();
    }

    /// Waits for messages and takes them all, up to the next barrier. Returns `None` if the queue is closed and empty.
    fn wait_for_step(&self) -> Option<WriteStep> {
        let must_wait = |state: &mut WriteQueueState| {
            state.pending.is_empty() && state.barriers.is_empty() && !state.closed
        };
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, must_wait);
        let bytes = match state.barriers.pop_front() {
            Some((0, barrier)) => return Some(WriteStep::Wait(barrier)),
            Some((before, barrier)) => {
                state.barriers.push_front((0, barrier));
                for (other, _) in state.barriers.iter_mut().skip(1) {
                    *other -= before;
                }
                state.pending.drain(..before).collect()
            }
            None => std::mem::take(&mut state.pending),
        };
        (!bytes.is_empty()).then_some(WriteStep::Write(bytes))
    }
}

/// What the thread does next.
enum WriteStep {
    Write(Vec<u8>),
    Wait(Barrier),
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

    #[test]
    fn a_reader_gets_everything_in_order() {
        let (sender, receiver) = mpsc::sync_channel(1_000);
        let writer = BackgroundWriter::new(Box::new(ChannelWriter(sender))).unwrap();
        for number in 0..1_000 {
            writer.enqueue(format!("{number}\n").as_bytes());
        }
        assert_eq!(writer.close(LONG_TIMEOUT), None);
        let read: Vec<u8> = receiver.iter().flatten().collect();
        let read = String::from_utf8(read).unwrap();
        let expected = (0..1_000).map(|number| number.to_string());
        assert!(read.lines().eq(expected));
    }

    #[test]
    fn a_message_without_a_json_form_ends_the_stream_and_is_no_empty_line() {
        let (sender, receiver) = mpsc::sync_channel(1_000);
        let writer = BackgroundWriter::new(Box::new(ChannelWriter(sender))).unwrap();
        writer.enqueue_json(&"first");
        // JSON has no key that is a list.
        writer.enqueue_json(&std::collections::BTreeMap::from([(vec![1], 2)]));
        writer.enqueue_json(&"never");
        let warning = writer.close(LONG_TIMEOUT).unwrap();
        assert!(warning.contains("key must be a string"), "{warning}");
        let read: Vec<u8> = receiver.iter().flatten().collect();
        assert_eq!(read, b"\"first\"\n");
    }

    #[test]
    fn messages_wait_for_what_was_queued_before_them() {
        let (sender, receiver) = mpsc::sync_channel(1_000);
        let writer = BackgroundWriter::new(Box::new(ChannelWriter(sender))).unwrap();
        let (open, opened) = mpsc::channel::<()>();
        writer.enqueue(b"before ");
        writer.wait_for(Box::new(move || opened.recv().unwrap()));
        writer.enqueue(b"after ");
        writer.wait_for(Box::new(|| {}));
        writer.enqueue(b"last");
        assert_eq!(receiver.recv().unwrap(), b"before ");
        assert_eq!(receiver.try_recv(), Err(mpsc::TryRecvError::Empty));
        open.send(()).unwrap();
        assert_eq!(writer.close(LONG_TIMEOUT), None);
        let read: Vec<u8> = receiver.iter().flatten().collect();
        assert_eq!(read, b"after last");
    }

    /// The run doesn't wait for a slow reader, and warns.
    #[test]
    fn a_stalled_reader_does_not_block_the_writer() {
        let (sender, receiver) = mpsc::sync_channel(0);
        let writer = BackgroundWriter::new(Box::new(ChannelWriter(sender))).unwrap();
        for _ in 0..20 {
            writer.enqueue(&vec![b'x'; 1 << 20]);
        }
        let warning = writer.close(Duration::ZERO).unwrap();
        assert!(warning.contains("too slow"), "{warning}");
        drop(receiver);
    }

    /// The run goes on without it.
    #[test]
    fn a_closed_reader_is_reported_once() {
        let (sender, receiver) = mpsc::sync_channel(0);
        drop(receiver);
        let writer = BackgroundWriter::new(Box::new(ChannelWriter(sender))).unwrap();
        writer.enqueue(b"1");
        writer.enqueue(b"2");
        let warning = writer.close(LONG_TIMEOUT).unwrap();
        assert!(warning.contains("broken pipe"), "{warning}");
    }
}
