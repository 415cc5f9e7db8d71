//! Where the events of a turn go, and what refuses starts.

use std::sync::mpsc;

use crate::doubts::CallInDoubt;
use crate::lease::Lease;
use toolq_core::exit::Exit;
use toolq_core::types::{CallMemory as _, CallRef, Commit, EmitError, Event, EventSink};
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

    /// Blocks until the server has everything that was recorded.
    fn store(&self) -> Result<(), EmitError> {
        let (sender, receiver) = mpsc::channel();
        let commit = Commit {
            syncs_log: true,
            ..Commit::default()
        };
        let done = Box::new(move |stored: Result<_, EmitError>| {
            let _ = sender.send(stored.map(drop));
        });
        self.log.commit(commit, done);
        let closed = |_| Err(EmitError("the log is closed".to_owned()));
        receiver.recv().unwrap_or_else(closed)
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
            // That takes a while, so the lease is looked at after it.
            self.store()?;
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
