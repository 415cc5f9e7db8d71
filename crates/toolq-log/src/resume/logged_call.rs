//! The state of one call, built up from its records.

use uuid::Uuid;

use crate::call_event::CallEvent;
use crate::call_log::CallLog;
use crate::read::{Corruption, LineExtent};
use crate::records::{CallRecord, Record};
use toolq_core::types::{CutOutput, Status};

/// What is kept of a call.
#[derive(Debug)]
pub(crate) struct LoggedCall {
    /// The id of its `tool_call`.
    pub(crate) record_id: Uuid,
    pub(crate) tool_use_id: Box<str>,
    pub(crate) tool_name: Box<str>,
    pub(crate) input_sha256: Option<Box<str>>,
    /// How far it has come.
    pub(crate) log: CallLog,
    /// The idempotency key of the last start.
    pub(crate) idempotency_key: Option<Box<str>>,
    /// Where its `tool_call` is.
    pub(crate) call_extent: LineExtent,
    /// Its result.
    pub(crate) answer: Option<LoggedAnswer>,
    /// Its latest rejection, unless it started since. Nothing ran.
    pub(crate) last_rejection: Option<LineExtent>,
}

/// The record that holds the result of a call.
#[derive(Debug, Clone)]
pub(crate) struct LoggedAnswer {
    pub(crate) extent: LineExtent,
    pub(crate) status: Status,
    pub(crate) is_error: bool,
    /// What is left of the output, if that was cut.
    pub(crate) cut_output: Option<Box<CutOutput>>,
}

impl LoggedCall {
    pub(crate) fn new(record: &Record, call: &CallRecord<'_>, end: u64) -> Self {
        Self {
            record_id: record.id,
            tool_name: (&*call.tool_name).into(),
            tool_use_id: (&*call.tool_use_id).into(),
            input_sha256: call.input_sha256.as_deref().map(Into::into),
            log: CallLog::default(),
            idempotency_key: None,
            call_extent: LineExtent::from_record(record, end),
            answer: None,
            last_rejection: None,
        }
    }

    /// Applies a record of this call.
    pub(crate) fn apply_record(&mut self, record: &Record, end: u64) -> Result<(), Corruption> {
        let Some(event) = CallEvent::from_record(record)? else {
            return Ok(());
        };
        // `toolq log verify` is what reports a record that can't follow the others.
        let _ = self.log.apply(&event);
        let extent = LineExtent::from_record(record, end);
        match event {
            CallEvent::Started(start) => {
                self.idempotency_key = Some((&*start.idempotency_key).into());
                (self.answer, self.last_rejection) = (None, None);
            }
            CallEvent::Result(end) if end.status.is_rejected() => {
                self.last_rejection = Some(extent);
            }
            CallEvent::Result(end) | CallEvent::InDoubt(end) => {
                self.answer = Some(LoggedAnswer {
                    extent,
                    cut_output: end.cut_output().map(Box::new),
                    status: end.status,
                    is_error: end.is_error,
                });
            }
            CallEvent::Resolved(resolve) => {
                self.last_rejection = None;
                self.answer = resolve.done.then(|| LoggedAnswer {
                    extent,
                    status: Status::Resolved,
                    is_error: resolve.is_error == Some(true),
                    cut_output: None,
                });
            }
            CallEvent::Approved(_) | CallEvent::Skipped(_) | CallEvent::Probed(_) => {}
        }
        Ok(())
    }
}
