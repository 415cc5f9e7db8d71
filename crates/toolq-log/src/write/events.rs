//! Turns events into records: which record an event becomes, and when it must be durable.

use std::io;

use crate::records::{AttemptStart, CallEndStats, SyncPolicy};
use crate::write::journal::Durability;
use crate::write::session_log::SessionLog;
use toolq_core::types::{Effect, EmitError, Event, EventSink};

impl EventSink for SessionLog {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        self.write_guarded(|log| {
            let mut durability = Durability::Lazy;
            for event in events {
                durability = durability.max(log.durability_of(event));
                log.record_event(event)?;
            }
            if durability == Durability::Lazy && events.iter().any(is_start_event) {
                log.journal.check_file()?;
            }
            log.journal.commit(durability)
        })
    }

    fn flush(&mut self) -> Result<(), EmitError> {
        self.write_guarded(|log| log.journal.flush())
    }
}

/// Returns whether the event announces that something is about to run.
fn is_start_event(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::Started { .. } | Event::Describing { .. } | Event::ListingTools { .. }
    )
}

/// Returns whether the event starts a call that isn't `read`.
fn starts_call_with_effect(event: &Event<'_>) -> bool {
    matches!(event, Event::Started { accepted, .. } if accepted.tool.effect != Effect::Read)
}

impl SessionLog {
    /// Returns when the record of this event must survive a power loss. Losing the result of a `read` call only costs
    /// the time to repeat it, so it can wait for the next sync.
    fn durability_of(&self, event: &Event<'_>) -> Durability {
        match event {
            _ if self.sync == SyncPolicy::All => match event {
                event if is_start_event(event) => Durability::Immediate,
                Event::Finished { .. } => Durability::BeforeDelivery,
                _ => Durability::Lazy,
            },
            Event::Started { .. } if starts_call_with_effect(event) => Durability::Immediate,
            Event::Finished { outcome, .. } if outcome.is_restored() => Durability::Lazy,
            Event::Finished { outcome, .. } if outcome.is_in_doubt() => Durability::Immediate,
            Event::Finished { call, .. } => {
                let open = self.open_calls.get(&call.key());
                match open.and_then(|open| open.effect) {
                    Some(Effect::Write | Effect::Idempotent) => Durability::BeforeDelivery,
                    Some(Effect::Read) | None => Durability::Lazy,
                }
            }
            _ => Durability::Lazy,
        }
    }

    fn record_event(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::TurnStarted {
                turn,
                parent,
                origin,
            } => self.record_turn(*turn, *parent, origin)?,
            Event::Queued { checked, batch } => self.record_call(checked, *batch)?,
            Event::ApprovalDecided { call, approval } => self.record_approval(call, approval)?,
            Event::Started {
                call,
                accepted,
                attempt,
                idempotency_key,
                waited,
            } => {
                let start = AttemptStart {
                    attempt: *attempt,
                    idempotency_key,
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
                cache,
                request: _,
            } => {
                let stats = CallEndStats {
                    duration: *duration,
                    attempts: *attempts,
                    agent_usage: *agent_usage,
                    cache,
                };
                self.record_result(call, outcome, answer, stats)?;
            }
            Event::AgentMessage {
                call,
                response: Some(response),
                turn,
                ..
            } => self.record_response(call, *turn, response)?,
            Event::QueueDrained { turn } => {
                self.open_turns.remove(&(*turn, None));
            }
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
