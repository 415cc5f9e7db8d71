//! Records of calls: a call when it is queued, below its turn, and its result, below the call.

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use serde_json::value::to_raw_value;
use uuid::Uuid;

use crate::memory::MemoryStore;
use crate::records::{
    AttemptStart, BLOB_REF_PREFIX, CallContent, CallEndRecord, CallEndStats, CallRecord,
    FailedAttempt, LateResultRecord, RecordContent, RecordKind, StartRecord, end_record_kind,
};
use crate::write::session_log::{OpenCall, Recorder};
use toolq_core::types::{
    AcceptedCall, CallAnswer, CallRef, CheckedCall, MaskedContent, MaskedJson, MaskedText, Outcome,
    RecalledCall, TurnOrigin,
};

/// How many calls are remembered whose results may come late.
const MAX_GIVEN_UP_CALLS: usize = 1024;
/// Largest input that metadata holds inline, in bytes.
const MAX_INLINE_INPUT_BYTES: usize = 8 << 10;

impl Recorder {
    pub(crate) fn record_call(
        &mut self,
        memory: &MemoryStore,
        checked: &CheckedCall,
        batch: Option<usize>,
    ) -> io::Result<()> {
        let call = CallRef::new(&checked.call, None);
        let turn = self.open_turns.get(&(call.turn, call.parent.clone()));
        let (parent, origin, mut detour) = match turn {
            Some(turn) => (Some(turn.record_id), turn.origin.clone(), turn.detour),
            None => (None, TurnOrigin::default(), false),
        };
        let identity = memory.identify(&RecalledCall {
            call: &checked.call,
            accepted: checked.verdict.accepted(),
            origin: &origin,
        });
        let content = CallContent::new(checked, &self.mask);
        let input_before = CallContent::input_before_coercion(checked, &self.mask);
        let input_before = input_before
            .map(|input| self.inline_or_store(input))
            .transpose()?;
        detour |= matches!(input_before, Some(RecordContent::Stored(_)));
        let fields = CallRecord::new(checked, batch, input_before, identity.as_ref(), &self.mask);
        self.counts.calls += 1;
        let (record_id, place) =
            self.journal
                .append(RecordKind::ToolCall, parent, (&content, &fields), detour)?;
        let open = OpenCall {
            record_id,
            place,
            start: None,
            identity,
            failed_attempt: None,
        };
        self.open_calls.insert(call.key(), open);
        Ok(())
    }

    /// Stores an input in a file if metadata has no room for it, or if it could be mistaken for a reference to a file.
    fn inline_or_store(&self, original: MaskedJson<'_>) -> io::Result<RecordContent<'static>> {
        let text = original.0.get();
        if text.len() <= MAX_INLINE_INPUT_BYTES && !text.starts_with(BLOB_REF_PREFIX) {
            return Ok(RecordContent::Inline(Cow::Owned(to_raw_value(&original)?)));
        }
        self.journal
            .store_blob(&original)
            .map(RecordContent::Stored)
    }

    pub(crate) fn record_result(
        &mut self,
        memory: &MemoryStore,
        call: &CallRef,
        outcome: &Outcome,
        answer: &CallAnswer,
        stats: CallEndStats<'_>,
    ) -> io::Result<()> {
        let Some(open) = self.open_calls.remove(&call.key()) else {
            return Ok(());
        };
        self.counts.answered += 1;
        self.counts.agent_calls += usize::from(call.parent.is_some());
        self.counts.recalled += usize::from(outcome.is_restored());
        let kind = end_record_kind(outcome);
        let content = MaskedContent(&answer.content, &self.mask);
        let fields = CallEndRecord::new(call, outcome, answer, stats, &self.mask);
        self.counts.count_call_end(&kind, answer.is_error);
        let (record, detour) = (Some(open.record_id), open.takes_detour());
        self.journal
            .append(kind, record, (&content, &fields), detour)?;
        self.note_given_up(call, open.record_id, outcome, stats.attempts);
        memory.end_agent(call);
        if stats.agent_usage.is_some() {
            let is_this_call = |agent_call: &CallRef| agent_call.key() == call.key();
            self.open_turns
                .retain(|(_, parent), _| !parent.as_deref().is_some_and(is_this_call));
        }
        Ok(())
    }

    /// Remembers a call of which an attempt may still be running somewhere else.
    fn note_given_up(&mut self, call: &CallRef, record: Uuid, outcome: &Outcome, attempts: u32) {
        let has_timed_out = matches!(outcome, Outcome::TimedOut { .. } | Outcome::InDoubt { .. });
        if has_timed_out || outcome.is_stopped_externally() || attempts > 1 {
            self.given_up_calls.push_back((call.key(), record));
            if self.given_up_calls.len() > MAX_GIVEN_UP_CALLS {
                self.given_up_calls.pop_front();
            }
        }
    }

    /// Records a result that came too late. One of a call that isn't remembered any more is dropped.
    pub(crate) fn record_late_result(
        &mut self,
        call: &CallRef,
        text: &str,
        is_error: bool,
    ) -> io::Result<()> {
        let key = call.key();
        let open = self.open_calls.get(&key).map(|open| open.record_id);
        let mut given_up = self.given_up_calls.iter();
        let given_up = || given_up.find_map(|(other, record)| (*other == key).then_some(*record));
        let Some(record) = open.or_else(given_up) else {
            return Ok(());
        };
        let fields = LateResultRecord::new(call, is_error, &self.mask);
        let content = MaskedText(text, &self.mask);
        self.journal.append(
            RecordKind::LateResult,
            Some(record),
            (&content, &fields),
            true,
        )?;
        Ok(())
    }
}

// Records of attempts, below their call.

impl Recorder {
    pub(crate) fn record_start(
        &mut self,
        memory: &MemoryStore,
        call: &CallRef,
        accepted: &AcceptedCall,
        start: AttemptStart<'_>,
    ) -> io::Result<()> {
        let open = self.open_calls.get_mut(&call.key());
        let failed_attempt = open.and_then(|open| open.failed_attempt.take());
        let fields = StartRecord::new(call, accepted, start, failed_attempt, &self.mask);
        let place = self.append_to_call(RecordKind::ToolStart, call, (&(), &fields))?;
        if let Some(open) = self.open_calls.get_mut(&call.key()) {
            open.start = Some(place);
        }
        if let Some(claim) = start.claim.filter(|_| fields.agent.is_some()) {
            memory.begin_agent(call, &claim.idempotency_key);
        }
        Ok(())
    }

    /// Keeps a failed attempt for the record of the next start.
    pub(crate) fn record_retry(&mut self, call: &CallRef, outcome: &Outcome, wait: Duration) {
        if let Some(open) = self.open_calls.get_mut(&call.key()) {
            open.failed_attempt = Some(FailedAttempt::new(outcome, wait));
        }
    }
}
