//! Where the events of a turn go, and what refuses starts.

use crate::doubts::CallInDoubt;
use crate::lease::Lease;
use toolq_core::exit::Exit;
use toolq_core::types::{CallRef, EmitError, Event, EventSink};
use toolq_log::SessionLog;

/// The events of a turn go to its log. Nothing starts without its yes, or after the lease.
pub(super) struct TurnLogSink {
    pub log: SessionLog,
    pub lease: Lease,
    /// The calls that are in doubt.
    pub doubts: Vec<CallInDoubt>,
    /// A call has no result of its own: it is in doubt, was paused, or had no approval.
    pub is_incomplete: bool,
}

impl TurnLogSink {
    pub(super) fn new(log: SessionLog, lease: Lease) -> Self {
        Self {
            log,
            lease,
            doubts: Vec::new(),
            is_incomplete: false,
        }
    }
}

fn refuse_late_start(lease: &Lease) -> Result<(), EmitError> {
    if lease.allows_start() {
        return Ok(());
    }
    let why = "the turn may be another worker's by now: its lease is over";
    Err(EmitError(why.to_owned()))
}

impl EventSink for TurnLogSink {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        self.log.emit(events)?;
        let starts =
            |event: &Event<'_>| matches!(event, Event::Started { .. } | Event::Probing { .. });
        if events.iter().any(starts) {
            // The disk is gone with the worker, so what starts has to be in the stream, and the turn this worker's after that.
            self.log.wait_until_durable()();
            if let Some(error) = self.log.write_error() {
                return Err(error);
            }
            refuse_late_start(&self.lease)?;
        }
        self.doubts.extend(events.iter().filter_map(new_doubt));
        let stops = |event: &Event<'_>| matches!(event, Event::Finished { outcome, .. } if Exit::of_outcome(outcome) != Exit::Ok);
        self.is_incomplete |= !self.doubts.is_empty() || events.iter().any(stops);
        Ok(())
    }

    fn shows_progress(&self, _: &CallRef) -> bool {
        false
    }
}

/// Remembers calls in doubt, and refuses every start.
#[derive(Default)]
pub(super) struct DoubtCollector(pub Vec<CallInDoubt>);

impl EventSink for DoubtCollector {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        self.0.extend(events.iter().filter_map(new_doubt));
        let starts = |event: &Event<'_>| matches!(event, Event::Started { .. });
        if events.iter().any(starts) {
            return Err(EmitError("the turn isn't run anymore".to_owned()));
        }
        Ok(())
    }
}

/// Returns the call of the input whose end leaves it in doubt. One of an agent leaves the agent in doubt.
fn new_doubt(event: &Event<'_>) -> Option<CallInDoubt> {
    match event {
        Event::Finished { call, outcome, .. } if outcome.is_in_doubt() && call.parent.is_none() => {
            Some(CallInDoubt {
                id: call.tool_use_id.clone(),
                tool: call.tool_name.to_string(),
            })
        }
        _ => None,
    }
}
