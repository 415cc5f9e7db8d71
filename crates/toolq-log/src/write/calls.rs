//! Records of calls: a call when it is queued, below its turn, and its result, below the call.

use std::borrow::Cow;
use std::io;

use serde_json::value::to_raw_value;
use uuid::Uuid;

use crate::records::{
    BLOB_REF_PREFIX, CallContent, CallEndRecord, CallEndStats, CallRecord, LateResultRecord,
    RecordContent, RecordKind, ToolMeaning, end_record_kind,
};
use crate::resume::{CallPosition, LoggedCall};
use crate::write::session_log::{OpenCall, SessionLog};
use toolq_core::json::to_json_line;
use toolq_core::types::{
    CallAnswer, CallRef, CheckedCall, MaskedContent, MaskedJson, MaskedText, Outcome, Verdict,
};

/// How many calls are remembered whose results may come late.
const MAX_GIVEN_UP_CALLS: usize = 1024;
/// Largest input that metadata holds inline, in bytes.
const MAX_INLINE_INPUT_BYTES: usize = 8 << 10;

impl SessionLog {
    pub(crate) fn record_call(
        &mut self,
        checked: &CheckedCall,
        batch: Option<usize>,
    ) -> io::Result<()> {
        let call = CallRef::new(&checked.call, None);
        let log_match = match self.history.as_ref() {
            Some(history) => history.check_call(&checked.call, &self.mask),
            None => Ok(false),
        };
        self.has_conflict |= log_match.is_err();
        if self.has_conflict && call.parent.is_none() {
            return Ok(());
        }
        let logged_call = match log_match {
            Ok(true) => self.logged_call(&call),
            _ => None,
        };
        let record = match logged_call {
            Some(logged_call) => logged_call.record_id,
            None => self.append_new_call(checked, batch)?,
        };
        let open = OpenCall {
            record_id: record,
            failed_attempt: None,
            effect: None,
        };
        self.open_calls.insert(call.key(), open);
        Ok(())
    }

    /// Returns what earlier runs recorded about a call of the input.
    fn logged_call(&self, call: &CallRef) -> Option<&LoggedCall> {
        let position = input_position(call)?;
        self.history.as_ref()?.call_at(position)
    }

    fn append_new_call(&mut self, checked: &CheckedCall, batch: Option<usize>) -> io::Result<Uuid> {
        let tool_meaning = match &checked.verdict {
            Verdict::Accepted(accepted) => {
                let tool = &*accepted.tool;
                if !self.tool_meanings.contains_key(&tool.name) {
                    self.tool_meanings
                        .insert(tool.name.clone(), ToolMeaning::new(tool));
                }
                self.tool_meanings.get(&tool.name)
            }
            Verdict::Rejected(_) => None,
        };
        let content = CallContent::new(checked, &self.mask);
        let input_before = CallContent::input_before_coercion(checked, &self.mask);
        let input_before = input_before
            .map(|input| self.inline_or_store(input))
            .transpose()?;
        let fields = CallRecord::new(checked, batch, input_before, tool_meaning, &self.mask);
        let parent = checked.call.parent.clone();
        let turn_id = self.open_turns.get(&(checked.call.turn, parent)).copied();
        self.counts.calls += 1;
        self.journal
            .append(&RecordKind::ToolCall, turn_id, &content, &fields)
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
        call: &CallRef,
        outcome: &Outcome,
        answer: &CallAnswer,
        stats: CallEndStats<'_>,
    ) -> io::Result<()> {
        // A call without a record: the input conflicts with the task that is being resumed.
        let Some(OpenCall {
            record_id: record, ..
        }) = self.open_calls.remove(&call.key())
        else {
            return Ok(());
        };
        self.counts.answered += 1;
        self.counts.agent_calls += usize::from(call.parent.is_some());
        if outcome.is_restored() {
            self.counts.recalled += 1;
            return Ok(());
        }
        let has_started = stats.attempts > 0;
        if !has_started && self.is_known_rejection(call, outcome, answer)? {
            return Ok(());
        }
        let kind = end_record_kind(outcome);
        let content = MaskedContent(&answer.content, &self.mask);
        let fields = CallEndRecord::new(call, outcome, answer, stats, &self.mask);
        self.journal
            .append(&kind, Some(record), &content, &fields)?;
        self.note_given_up(call, record, outcome, stats.attempts);
        self.counts.count_call_end(&kind, answer.is_error);
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
        self.journal
            .append(&RecordKind::LateResult, Some(record), &content, &fields)?;
        Ok(())
    }

    /// Returns whether an earlier run rejected the call with the same answer.
    fn is_known_rejection(
        &self,
        call: &CallRef,
        outcome: &Outcome,
        answer: &CallAnswer,
    ) -> io::Result<bool> {
        let (Some(history), Some(position)) = (&self.history, input_position(call)) else {
            return Ok(false);
        };
        if !matches!(outcome, Outcome::Rejected(_)) {
            return Ok(false);
        }
        let json = serde_json::to_string(&MaskedContent(&answer.content, &self.mask))?;
        Ok(history.has_same_rejection(position, &to_json_line(&json)))
    }
}

/// Returns the position of a call that the input requested.
fn input_position(call: &CallRef) -> Option<CallPosition> {
    let (turn, position) = (call.turn, call.position);
    call.parent
        .is_none()
        .then_some(CallPosition { turn, position })
}
