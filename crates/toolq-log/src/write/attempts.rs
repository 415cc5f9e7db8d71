//! Records below a call from before its result: of its approval, its attempts, and the probes that ask whether it did its
//! work.

use std::io;
use std::time::Duration;

use crate::records::{
    ApprovalRecord, AttemptStart, FailedAttempt, ProbeRecord, RecordKind, StartRecord,
};
use crate::write::session_log::SessionLog;
use toolq_core::types::{AcceptedCall, Approval, CallRef, Outcome, ProbeFinding};

impl SessionLog {
    pub(crate) fn record_approval(
        &mut self,
        call: &CallRef,
        approval: &Approval,
    ) -> io::Result<()> {
        let parent = self.open_calls.get(&call.key()).map(|open| open.record_id);
        let fields = ApprovalRecord::new(call, approval, &self.mask);
        self.journal
            .append(&RecordKind::Approval, parent, &(), &fields)?;
        Ok(())
    }

    pub(crate) fn record_start(
        &mut self,
        call: &CallRef,
        accepted: &AcceptedCall,
        start: AttemptStart<'_>,
    ) -> io::Result<()> {
        let open = self.open_calls.get_mut(&call.key());
        let known = open.map(|open| {
            open.effect = Some(accepted.tool.effect);
            (open.record_id, open.failed_attempt.take())
        });
        let (parent, failed_attempt) = known.unzip();
        let fields = StartRecord::new(call, accepted, start, failed_attempt.flatten(), &self.mask);
        self.journal
            .append(&RecordKind::ToolStart, parent, &(), &fields)?;
        Ok(())
    }

    /// Keeps a failed attempt for the record of the next start.
    pub(crate) fn record_retry(&mut self, call: &CallRef, outcome: &Outcome, wait: Duration) {
        if let Some(open) = self.open_calls.get_mut(&call.key()) {
            open.failed_attempt = Some(FailedAttempt::new(outcome, wait));
        }
    }

    pub(crate) fn record_probe_start(&mut self, call: &CallRef) -> io::Result<()> {
        let parent = self.open_calls.get(&call.key()).map(|open| open.record_id);
        let fields = ProbeRecord::new(call, &self.mask);
        self.journal
            .append(&RecordKind::ProbeStart, parent, &(), &fields)?;
        Ok(())
    }

    pub(crate) fn record_probe_end(
        &mut self,
        call: &CallRef,
        finding: ProbeFinding,
        outcome: &Outcome,
        duration: Duration,
    ) -> io::Result<()> {
        let parent = self.open_calls.get(&call.key()).map(|open| open.record_id);
        let fields = ProbeRecord::new(call, &self.mask).with_finding(finding, outcome, duration);
        self.journal
            .append(&RecordKind::ProbeEnd, parent, &(), &fields)?;
        Ok(())
    }
}
