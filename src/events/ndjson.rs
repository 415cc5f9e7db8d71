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

mod call_events;

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use crate::events::background_writer::{BackgroundWriter, Barrier};
use crate::events::call_snapshots::CallSnapshots;
use crate::events::event_line::{EventLine, duration_to_ms};
use crate::events::server_line::{ServerLine, ToolsChangeLine};
use crate::terminal::PROBING_LABEL;
use crate::terminal::outcome_label;
use redact::Mask;
use toolq_core::os::Clock;
use toolq_core::types::{CallRef, EmitError, Event, EventSink, ToolsChange};

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
            | Event::LateResult { .. }
            | Event::Probed { .. }
            | Event::Describing { .. }
            | Event::Described { .. }
            | Event::ListingTools { .. }
            | Event::ToolsListed { .. } => {}
            Event::ToolsChanged(change) => self.on_tools_changed(change),
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
                let label = outcome_label::retry_label(event).map(Cow::Owned);
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
                    duration_ms: Some(duration_to_ms(*duration)),
                    ..EventLine::new("agent_completed")
                };
                self.write_agent_event(call, agent, line);
            }
            _ => {}
        }
    }

    fn on_tools_changed(&self, change: &ToolsChange) {
        let line = ToolsChangeLine::new(change, self.clock.now_ms(), &self.mask);
        self.writer.enqueue_json(&line);
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
