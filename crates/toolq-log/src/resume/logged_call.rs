//! The state of one call, built up from its records.

use uuid::Uuid;

use crate::read::Corruption;
use crate::records::metadata;
use crate::records::{Record, RecordKind};
use crate::resume::policy::LoggedCallState;
use toolq_core::types::{Effect, Status};

/// What is kept of a call.
#[derive(Debug)]
pub(crate) struct LoggedCall {
    /// The id of its `tool_call`.
    pub(crate) record_id: Uuid,
    pub(crate) tool_use_id: Box<str>,
    pub(crate) tool_name: Box<str>,
    pub(crate) input_sha256: Option<Box<str>>,
    pub(crate) tool_sha256: Option<Box<str>>,
    pub(crate) state: LoggedCallState,
    /// How many attempts were started.
    pub(crate) attempts: u32,
    /// The idempotency key of the last start.
    pub(crate) idempotency_key: Option<Box<str>>,
    /// The effect of its tool at the last start.
    pub(crate) effect: Option<Effect>,
    /// Where its `tool_call` is.
    pub(crate) call_extent: LineExtent,
    /// Its result.
    pub(crate) answer: Option<LoggedAnswer>,
    /// The call of the agent that requested it.
    pub(crate) parent: Option<Uuid>,
    /// Whether an agent started to work on it.
    pub(crate) is_agent_call: bool,
    /// Its latest rejection, unless it started since. Doesn't change `state`: nothing ran.
    pub(crate) last_rejection: Option<LineExtent>,
}

/// Where a line is in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineExtent {
    /// Byte offset of its beginning.
    pub(crate) offset: u64,
    /// Length in bytes, including its line break.
    pub(crate) len: u32,
}

/// The record that holds the result of a call.
#[derive(Debug, Clone)]
pub(crate) struct LoggedAnswer {
    pub(crate) extent: LineExtent,
    pub(crate) status: Status,
    pub(crate) is_error: bool,
}

impl LineExtent {
    pub(crate) fn from_record(record: &Record, end: u64) -> Self {
        Self {
            offset: record.offset,
            // No line is longer than 64 KiB.
            len: u32::try_from(end - record.offset).unwrap_or(u32::MAX),
        }
    }
}

impl LoggedCall {
    pub(crate) fn new(
        record: &Record,
        call: metadata::CallRecord,
        parent: Option<Uuid>,
        end: u64,
    ) -> Self {
        Self {
            record_id: record.id,
            tool_name: call.tool_name.into(),
            tool_use_id: call.tool_use_id.into(),
            input_sha256: call.input_sha256.map(Into::into),
            tool_sha256: call.tool_sha256.map(Into::into),
            state: LoggedCallState::Requested,
            attempts: 0,
            idempotency_key: None,
            effect: None,
            call_extent: LineExtent::from_record(record, end),
            answer: None,
            parent,
            is_agent_call: false,
            last_rejection: None,
        }
    }

    /// Returns whether a user may resolve it: its effect is unknown, or someone stated that it had none.
    pub(crate) fn is_resolvable(&self) -> bool {
        matches!(
            self.state,
            LoggedCallState::Started | LoggedCallState::InDoubt | LoggedCallState::NotDone
        )
    }

    pub(crate) fn is_in_doubt(&self) -> bool {
        self.state == LoggedCallState::InDoubt
    }

    /// Returns whether it may have had an effect that must not be repeated.
    pub(crate) fn may_have_had_effect(&self) -> bool {
        let is_write = self.effect == Some(Effect::Write);
        self.is_in_doubt() || self.state == LoggedCallState::Started && is_write
    }

    /// Applies a record of this call.
    pub(crate) fn apply_record(&mut self, record: &Record, end: u64) -> Result<(), Corruption> {
        match &record.kind {
            RecordKind::ToolStart => self.apply_start(record),
            RecordKind::ToolResult | RecordKind::ToolInDoubt => self.apply_end(record, end),
            RecordKind::Resolve => self.apply_resolve(record, end),
            RecordKind::ToolSkipped => self.apply_skip(record),
            RecordKind::ProbeEnd => self.apply_probe_end(record),
            _ => Ok(()),
        }
    }

    /// The finding `not_done` counts even if no start follows it. After `done`, the result of the call is recorded
    /// next.
    fn apply_probe_end(&mut self, record: &Record) -> Result<(), Corruption> {
        let probed: metadata::ProbeEndRecord<'_> = record.parse_metadata()?;
        if probed.finding == "not_done" {
            self.state = LoggedCallState::NotDone;
        }
        Ok(())
    }

    fn apply_start(&mut self, record: &Record) -> Result<(), Corruption> {
        let start: metadata::StartRecord<'_> = record.parse_metadata()?;
        self.state = LoggedCallState::Started;
        self.attempts = self.attempts.max(start.attempt);
        self.idempotency_key = Some(start.idempotency_key.into());
        self.effect = Effect::from_name(&start.effect);
        self.is_agent_call = start.agent.is_some();
        self.answer = None;
        self.last_rejection = None;
        Ok(())
    }

    fn apply_end(&mut self, record: &Record, end: u64) -> Result<(), Corruption> {
        let call_end: metadata::CallEndRecord<'_> = record.parse_metadata()?;
        if call_end.status.is_rejected() {
            self.last_rejection = Some(LineExtent::from_record(record, end));
            return Ok(());
        }
        let was_started = self.state == LoggedCallState::Started;
        self.state = match record.kind {
            RecordKind::ToolInDoubt => LoggedCallState::InDoubt,
            _ if was_started && call_end.is_interrupted() => LoggedCallState::Interrupted,
            _ => LoggedCallState::Ended,
        };
        self.answer = Some(LoggedAnswer {
            extent: LineExtent::from_record(record, end),
            status: call_end.status,
            is_error: call_end.is_error,
        });
        Ok(())
    }

    /// A call that was canceled between its start and sending anything certainly had no effect. Otherwise, being
    /// skipped doesn't change its state.
    fn apply_skip(&mut self, record: &Record) -> Result<(), Corruption> {
        let call_end: metadata::CallEndRecord<'_> = record.parse_metadata()?;
        if self.state == LoggedCallState::Started && call_end.attempts > 0 {
            self.state = LoggedCallState::NotDone;
        }
        Ok(())
    }

    fn apply_resolve(&mut self, record: &Record, end: u64) -> Result<(), Corruption> {
        let resolution: metadata::ResolveRecord = record.parse_metadata()?;
        if !resolution.done {
            self.state = LoggedCallState::NotDone;
            self.answer = None;
            return Ok(());
        }
        self.state = LoggedCallState::Done;
        self.answer = Some(LoggedAnswer {
            extent: LineExtent::from_record(record, end),
            status: Status::Resolved,
            is_error: resolution.is_error,
        });
        Ok(())
    }
}
