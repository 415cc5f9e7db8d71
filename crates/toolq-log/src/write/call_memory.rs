//! The log as the memory of its session: what the engine asks before a call starts, and what it waits for.

use crate::memory::{Claim, EntryName, RememberedIn, Settlement};
use crate::records::{RecordKind, ResolveRecord, recorded_text};
use crate::write::journal::{Job, Place};
use crate::write::session_log::{Recorder, SessionLog};
use toolq_core::types::{
    CallClaim, CallHistory, CallKey, CallMemory, CallRef, CommitDone, EmitError, RecalledCall,
    RestoredResult, ResultContent,
};

impl CallMemory for SessionLog {
    fn history(&self) -> &dyn CallHistory {
        self.memory()
    }

    fn commit(&self, claims: Vec<(CallKey, CallClaim)>, done: CommitDone) {
        let done = self.taking(&claims, done);
        let recorder = self.recorder();
        let RememberedIn::State { claims: dir, .. } = &self.memory().place else {
            // The lock of the log and its starts are the claims.
            let are_ours: Vec<bool> = claims
                .iter()
                .map(|(_, claim)| self.memory().claim_in_own_log(&claim.name))
                .collect();
            return recorder.sync_then(move |synced| done(synced.map(|()| are_ours)));
        };
        if claims.is_empty() {
            return recorder.sync_then(move |synced| done(synced.map(|()| Vec::new())));
        }
        let log = &self.memory().own_log;
        let wanted = claims
            .iter()
            .map(|(call, claim)| recorder.entry_of(call, claim, log));
        match wanted.collect::<Option<Vec<_>>>() {
            Some(wanted) => recorder.journal.send(Job::Claim(dir.clone(), wanted, done)),
            None => done(Err(EmitError(
                "a call was claimed that has not started".to_owned(),
            ))),
        }
    }

    fn settle(
        &self,
        call: &CallRef,
        claim: &CallClaim,
        done: Option<&RestoredResult>,
    ) -> Result<(), EmitError> {
        let Some((name, _)) = EntryName::parse(&claim.name) else {
            return Ok(());
        };
        let settlement = Settlement {
            done: done.is_some(),
            result: done.map(|result| {
                let text = self.mask().apply(&result.content.to_text()).into_owned();
                match result.content {
                    ResultContent::Text(_) => text.into(),
                    ResultContent::Blocks(_) => serde_json::from_str(&text).unwrap_or(text.into()),
                }
            }),
            is_error: done.is_some_and(|result| result.is_error),
            by: "probe".to_owned(),
            note: None,
            timestamp: self.recorder().journal.shared.clock.now_ms(),
        };
        if self.memory().is_own_log() {
            return self.record_settlement(call, &name, &settlement);
        }
        self.memory()
            .settle(&name, &settlement)
            .map_err(|error| error.of_memory())
    }

    fn ask(&self, request: &RecalledCall<'_>) -> Result<(), EmitError> {
        let question = self.memory().question(request);
        let Some((name, question)) = question.map_err(|error| error.of_memory())? else {
            return Ok(());
        };
        let mut recorder = self.recorder();
        // The question names the record of the call, which others read.
        recorder.write_guarded(|recorder| recorder.journal.shared.write())?;
        let call = CallRef::new(request.call, None);
        if let Some(open) = recorder.open_calls.get(&call.key()) {
            let dir = self.memory().entries_dir().to_owned();
            recorder
                .journal
                .send(Job::Ask(dir, name, question, open.place));
        }
        Ok(())
    }
}

impl SessionLog {
    /// Notes which calls this session has made once they are claimed, before `done` is called.
    fn taking(&self, claims: &[(CallKey, CallClaim)], done: CommitDone) -> CommitDone {
        if claims.is_empty() {
            return done;
        }
        let log = self.clone();
        let claims: Vec<Option<(EntryName, CallKey)>> = claims
            .iter()
            .map(|(call, claim)| Some((EntryName::parse(&claim.name)?.0, call.clone())))
            .collect();
        Box::new(move |claimed| {
            for (claim, is_ours) in claims.into_iter().zip(claimed.iter().flatten()) {
                if let Some((name, call)) = claim.filter(|_| *is_ours) {
                    log.memory().take(&name.key, name.instance, call);
                }
            }
            done(claimed);
        })
    }

    /// Records a settlement in this log, which is the memory.
    fn record_settlement(
        &self,
        call: &CallRef,
        name: &EntryName,
        settlement: &Settlement,
    ) -> Result<(), EmitError> {
        let mut recorder = self.recorder();
        recorder.write_guarded(|recorder| {
            let id = recorded_text(&call.tool_use_id, self.mask());
            let tool = recorded_text(&call.tool_name, self.mask());
            let fields = ResolveRecord::new((id, tool), name, settlement);
            recorder.append_to_call(RecordKind::Resolve, call, (&settlement.result, &fields))?;
            recorder.journal.shared.write()
        })?;
        recorder.journal.sync()
    }
}

impl Recorder {
    /// Calls `done` once everything that was recorded so far is durable.
    pub(crate) fn sync_then(&self, done: impl FnOnce(Result<(), EmitError>) + Send + 'static) {
        match self.journal.shared.failure() {
            Some(failure) => done(Err(failure.clone())),
            None => self.journal.send(Job::Sync(Box::new(done))),
        }
    }

    /// Returns the entry that claims a call whose start was recorded.
    fn entry_of(
        &self,
        call: &CallKey,
        claim: &CallClaim,
        log: &str,
    ) -> Option<(EntryName, Claim, Place)> {
        let open = self.open_calls.get(call)?;
        let (name, _) = EntryName::parse(&claim.name)?;
        let claim = Claim {
            log: log.to_owned(),
            offset: 0,
            word: claim.generation,
            context: open.identity.as_ref()?.context,
        };
        Some((name, claim, open.start?))
    }
}
