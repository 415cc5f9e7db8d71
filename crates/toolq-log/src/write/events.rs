//! Turns events into records.

use std::io;

use crate::memory::MemoryStore;
use crate::records::{AttemptStart, CallEndStats};
use crate::write::session_log::{Recorder, SessionLog};
use toolq_core::types::{EmitError, Event, EventSink};

impl EventSink for SessionLog {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        let mut recorder = self.recorder();
        recorder.write_guarded(|recorder| {
            for event in events {
                recorder.record_event(self.memory(), event)?;
            }
            if events.iter().any(is_start_event) {
                recorder.journal.check_file()?;
            }
            recorder.journal.write()
        })
    }
}

/// Returns whether the event announces that something is about to run.
fn is_start_event(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::Started { .. } | Event::Describing { .. } | Event::ListingTools { .. }
    )
}

impl Recorder {
    /// Runs `write` unless an earlier write failed. Nothing is attempted after the first failure.
    pub(crate) fn write_guarded(
        &mut self,
        write: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> Result<(), EmitError> {
        if let Some(failure) = self.journal.failure() {
            return Err(failure.clone());
        }
        let written = write(self);
        self.journal.guard(|| written)
    }

    fn record_event(&mut self, memory: &MemoryStore, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::TurnStarted {
                turn,
                parent,
                origin,
            } => self.record_turn(*turn, *parent, origin)?,
            Event::Queued { checked, batch } => self.record_call(memory, checked, *batch)?,
            Event::ApprovalDecided { call, approval } => self.record_approval(call, approval)?,
            Event::Started {
                call,
                accepted,
                attempt,
                idempotency_key,
                claim,
                waited,
            } => {
                let start = AttemptStart {
                    attempt: *attempt,
                    idempotency_key,
                    claim: *claim,
                    waited: *waited,
                };
                self.record_start(call, accepted, start)?;
            }
            Event::Retrying {
                call,
                outcome,
                wait,
                ..
            } => self.record_retry(call, outcome, *wait),
            Event::Finished {
                call,
                outcome,
                answer,
                duration,
                attempts,
                agent_usage,
                claim: _,
                request: _,
            } => {
                let stats = CallEndStats {
                    duration: *duration,
                    attempts: *attempts,
                    agent_usage: *agent_usage,
                };
                self.record_result(call, outcome, answer, stats)?;
            }
            Event::AgentMessage {
                call,
                response: Some(response),
                turn,
                ..
            } => self.record_response(call, *turn, response)?,
            Event::QueueDrained { turn } => drop(self.open_turns.remove(&(*turn, None))),
            Event::Probing { call } => self.record_probe_start(call)?,
            Event::Probed {
                call,
                finding,
                outcome,
                duration,
            } => self.record_probe_end(call, *finding, outcome, *duration)?,
            Event::Describing { tool } => self.record_describe_start(tool)?,
            Event::Described {
                tool,
                outcome,
                duration,
                attempts,
            } => self.record_describe_end(tool, outcome, *duration, *attempts)?,
            Event::ListingTools { server } => self.record_list_start(server)?,
            Event::ToolsListed { server, duration } => self.record_list_end(server, *duration)?,
            Event::ServerStarted(start) => self.record_server_start(start)?,
            Event::ServerEnded(end) => self.record_server_end(end)?,
            Event::LateResult {
                call,
                text,
                is_error,
            } => self.record_late_result(call, text, *is_error)?,
            Event::ToolsChanged(change) => self.record_tools_change(change)?,
            Event::ApprovalRequested { .. }
            | Event::Throttled { .. }
            | Event::ApproverStopped { .. }
            | Event::AgentStarted { .. }
            | Event::AgentProgress { .. }
            | Event::AgentMessage { .. }
            | Event::AgentCompleted { .. }
            | Event::PartialInput { .. }
            | Event::BatchStarted { .. }
            | Event::Status { .. }
            | Event::ResultWritten { .. } => {}
        }
        Ok(())
    }
}
