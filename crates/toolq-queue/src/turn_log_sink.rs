//! Where the events of a turn go, and what refuses starts.

use crate::doubts::CallInDoubt;
use crate::lease::Lease;
use toolq_core::exit::Exit;
use toolq_core::types::{
    CallClaim, CallMemory, CallRef, Commit, CommitDone, EarlierRun, EmitError, Event, EventSink,
    RecalledCall, Recollection, RestoredResult,
};
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

/// The log of a turn as its memory. It takes a while until a start is stored, so the lease is looked at once more after that.
#[derive(Debug)]
pub(super) struct LeasedMemory {
    pub log: SessionLog,
    pub lease: Lease,
}

impl CallMemory for LeasedMemory {
    fn commit(&self, commit: Commit, done: CommitDone) {
        let (starts, lease) = (!commit.claims.is_empty(), self.lease.clone());
        let done = move |claimed: Result<Vec<bool>, EmitError>| {
            let claimed = match claimed {
                Ok(claimed) if starts => refuse_late_start(&lease).map(|()| claimed),
                claimed => claimed,
            };
            done(claimed);
        };
        self.log.commit(commit, Box::new(done));
    }

    fn recall(&self, call: &RecalledCall<'_>) -> Result<Recollection, EmitError> {
        self.log.recall(call)
    }

    fn find_run(&self, call: &RecalledCall<'_>) -> Result<Option<EarlierRun>, EmitError> {
        self.log.find_run(call)
    }

    fn recall_read(
        &self,
        call: &RecalledCall<'_>,
        run: Option<&EarlierRun>,
    ) -> Result<Option<RestoredResult>, EmitError> {
        self.log.recall_read(call, run)
    }

    fn resumes_reads(&self) -> bool {
        self.log.resumes_reads()
    }

    fn remembers_ids(&self) -> bool {
        self.log.remembers_ids()
    }

    fn is_at_hand(&self) -> bool {
        self.log.is_at_hand()
    }

    fn settle(
        &self,
        call: &CallRef,
        claim: &CallClaim,
        done: Option<&RestoredResult>,
    ) -> Result<(), EmitError> {
        self.log.settle(call, claim, done)
    }

    fn ask(&self, call: &RecalledCall<'_>) -> Result<(), EmitError> {
        self.log.ask(call)
    }
}

impl EventSink for TurnLogSink {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        self.log.emit(events)?;
        let starts =
            |event: &Event<'_>| matches!(event, Event::Started { .. } | Event::Probing { .. });
        if events.iter().any(starts) {
            refuse_late_start(&self.lease)?;
            // Those of reads, too, so that it is known over what a worker was lost.
            let commit = Commit {
                syncs_log: true,
                ..Commit::default()
            };
            self.log.commit(commit, Box::new(|_| ()));
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
