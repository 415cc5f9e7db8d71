//! Records below a call from before its result: of its approval, its attempts, and the probes that ask whether it did its
//! work.

use std::io;
use std::time::Duration;

use uuid::Uuid;

use crate::records::{
    ApprovalRecord, AttemptStart, FailedAttempt, ProbeRecord, RecordKind, StartRecord,
};
use crate::write::session_log::{OpenCall, Recorder};
use toolq_core::types::{AcceptedCall, Approval, CallRef, Outcome, ProbeFinding};

impl Recorder {
    pub(crate) fn record_approval(
        &mut self,
        call: &CallRef,
        approval: &Approval,
    ) -> io::Result<()> {
        let (parent, detour) = self.parent_of(call);
        let fields = ApprovalRecord::new(call, approval, &self.mask);
        self.journal
            .append(RecordKind::Approval, parent, (&(), &fields), detour)?;
        Ok(())
    }

    pub(crate) fn record_start(
        &mut self,
        call: &CallRef,
        accepted: &AcceptedCall,
        start: AttemptStart<'_>,
    ) -> io::Result<()> {
        let (parent, detour) = self.parent_of(call);
        let open = self.open_calls.get_mut(&call.key());
        let failed_attempt = open.and_then(|open| open.failed_attempt.take());
        let fields = StartRecord::new(call, accepted, start, failed_attempt, &self.mask);
        let (_, place) =
            self.journal
                .append(RecordKind::ToolStart, parent, (&(), &fields), detour)?;
        if let Some(open) = self.open_calls.get_mut(&call.key()) {
            (open.start, open.claim) = (Some(place), start.claim.cloned());
        }
        Ok(())
    }

    /// Returns the record of a call, and whether records that belong to it take a detour.
    fn parent_of(&self, call: &CallRef) -> (Option<Uuid>, bool) {
        let open = self.open_calls.get(&call.key());
        (
            open.map(|open| open.record_id),
            open.is_some_and(OpenCall::takes_detour),
        )
    }

    /// Keeps a failed attempt for the record of the next start.
    pub(crate) fn record_retry(&mut self, call: &CallRef, outcome: &Outcome, wait: Duration) {
        if let Some(open) = self.open_calls.get_mut(&call.key()) {
            open.failed_attempt = Some(FailedAttempt::new(outcome, wait));
        }
    }

    pub(crate) fn record_probe_start(&mut self, call: &CallRef) -> io::Result<()> {
        let (parent, detour) = self.parent_of(call);
        let fields = ProbeRecord::new(call, &self.mask);
        self.journal
            .append(RecordKind::ProbeStart, parent, (&(), &fields), detour)?;
        Ok(())
    }

    pub(crate) fn record_probe_end(
        &mut self,
        call: &CallRef,
        finding: ProbeFinding,
        outcome: &Outcome,
        duration: Duration,
    ) -> io::Result<()> {
        let (parent, detour) = self.parent_of(call);
        let fields = ProbeRecord::new(call, &self.mask).with_finding(finding, outcome, duration);
        self.journal
            .append(RecordKind::ProbeEnd, parent, (&(), &fields), detour)?;
        Ok(())
    }
}
