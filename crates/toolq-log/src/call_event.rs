//! A record that belongs to a call, read as what it says about the call.

use crate::read::Corruption;
use crate::records::{
    ApprovalRecord, CallEndRecord, ProbeRecord, Record, RecordKind, ResolveRecord, StartRecord,
};
use toolq_core::types::OutcomeKind;

/// A record that belongs to a call, after its `tool_call`.
#[derive(Debug)]
#[expect(missing_docs, reason = "the variants are the record types")]
pub enum CallEvent<'r> {
    Approved(ApprovalRecord<'r>),
    Started(StartRecord<'r>),
    Result(CallEndRecord<'r>),
    Skipped(CallEndRecord<'r>),
    InDoubt(CallEndRecord<'r>),
    Probed(ProbeRecord<'r>),
    Resolved(ResolveRecord<'r>),
}

impl<'r> CallEvent<'r> {
    /// Reads a record. Returns `None` if it doesn't change the state of a call.
    ///
    /// # Errors
    /// Its metadata doesn't match its type.
    pub fn from_record(record: &'r Record) -> Result<Option<Self>, Corruption> {
        Ok(Some(match record.kind {
            RecordKind::Approval => Self::Approved(record.parse_metadata()?),
            RecordKind::ToolStart => Self::Started(record.parse_metadata()?),
            RecordKind::ToolResult => Self::Result(record.parse_metadata()?),
            RecordKind::ToolSkipped => Self::Skipped(record.parse_metadata()?),
            RecordKind::ToolInDoubt => Self::InDoubt(record.parse_metadata()?),
            RecordKind::ProbeEnd => Self::Probed(record.parse_metadata()?),
            RecordKind::Resolve => Self::Resolved(record.parse_metadata()?),
            _ => return Ok(None),
        }))
    }

    /// Returns the tool of the call.
    pub fn tool_name(&self) -> &str {
        match self {
            Self::Approved(approval) => &approval.tool_name,
            Self::Started(start) => &start.tool_name,
            Self::Result(end) | Self::Skipped(end) | Self::InDoubt(end) => &end.tool_name,
            Self::Probed(probe) => &probe.tool_name,
            Self::Resolved(resolve) => &resolve.tool_name,
        }
    }

    /// Returns whether the model reads the result of the call as an error. A call that is resolved as not done has no
    /// result, and counts as an error.
    pub fn is_error(&self) -> bool {
        match self {
            Self::Approved(_) | Self::Started(_) | Self::Probed(_) => false,
            Self::Result(end) | Self::Skipped(end) | Self::InDoubt(end) => end.is_error,
            Self::Resolved(resolve) => !resolve.done || resolve.is_error == Some(true),
        }
    }

    /// Returns the word for how a call ended whose last record this is, as users see it.
    pub fn outcome_kind(&self) -> OutcomeKind {
        match self {
            Self::Approved(_) | Self::Started(_) | Self::Probed(_) => OutcomeKind::Unfinished,
            Self::Result(end) if end.status.is_rejected() => OutcomeKind::Rejected,
            Self::Skipped(end) if end.memory.is_none() => OutcomeKind::Skipped,
            Self::InDoubt(_) => OutcomeKind::InDoubt,
            Self::Resolved(resolve) if !resolve.done => OutcomeKind::Unfinished,
            event if event.is_error() => OutcomeKind::Failed,
            _ => OutcomeKind::Ok,
        }
    }
}
