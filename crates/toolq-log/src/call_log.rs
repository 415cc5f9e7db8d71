//! The state of a call, as its records build it up: one state machine for `verify`, calls in doubt,
//! statistics and `show`.
//!
//! A call is requested before it starts, and starts before it has a result. It gets one result and never starts again
//! after that. A call that may have had its effect starts again only if a user or a probe stated that it had no effect.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::error::Corruption;
use crate::records::{
    ApprovalRecord, CallEndRecord, ProbeRecord, Record, RecordKind, ResolveRecord, StartRecord,
};
use toolq_core::types::{OutcomeKind, Reach};

/// How far a call has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LoggedCallState {
    /// It was requested, nothing more. A skipped or rejected call stays in this state, since it never started.
    #[default]
    Requested,
    /// It was started and has no end.
    Started,
    /// It was started, and ended because its run ended.
    Interrupted,
    /// It has its result.
    Ended,
    /// It was answered as in doubt.
    InDoubt,
    /// It was in doubt, and a user stated that it was done and what its result is.
    Done,
    /// It was started and certainly had no effect: a user or a probe stated so, or it was canceled in time.
    NotDone,
}

/// What the records of a call say so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallLog {
    state: LoggedCallState,
    attempts: u32,
    is_approved: bool,
    /// Its result leaves its effect open, so that it is in doubt where its tool runs once for some values.
    has_open_result: bool,
    /// Stands for the claim of the last start.
    claim: Option<u64>,
}

impl CallLog {
    /// Returns whether it has a result that no later run replaces.
    pub fn is_final(&self) -> bool {
        matches!(self.state, LoggedCallState::Ended | LoggedCallState::Done)
    }

    /// Returns whether a user may state what happened: its effect is unknown, or was stated not to have happened.
    fn is_resolvable(self) -> bool {
        matches!(
            self.state,
            LoggedCallState::Started
                | LoggedCallState::Interrupted
                | LoggedCallState::InDoubt
                | LoggedCallState::NotDone
        )
    }

    /// Forgets a yes: it counts only in the run in which it was given.
    pub(crate) fn forget_approval(&mut self) {
        self.is_approved = false;
    }

    /// Applies the next record of the call, in any case.
    ///
    /// # Errors
    /// The record can't follow the previous ones: its writer broke a promise, or wasn't toolq.
    pub fn apply(&mut self, event: &CallEvent<'_>) -> Result<(), &'static str> {
        let checked = match event {
            CallEvent::Approved(_) if self.is_final() => Err("its call already has a result"),
            CallEvent::Started(start) => self.check_start(start),
            CallEvent::Result(_) | CallEvent::Skipped(_) => self.check_has_no_result(),
            CallEvent::InDoubt(end) => self.check_in_doubt(end),
            CallEvent::Approved(_) | CallEvent::Probed(_) => Ok(()),
            CallEvent::Resolved(_) if self.is_resolvable() || self.has_open_result => Ok(()),
            // An earlier run has started it, and its probe has found out.
            CallEvent::Resolved(resolve) if self.is_probed(resolve) => Ok(()),
            CallEvent::Resolved(_) => Err("it resolves a call that isn't in doubt"),
        };
        self.advance(event);
        checked
    }

    fn advance(&mut self, event: &CallEvent<'_>) {
        if let CallEvent::Approved(approval) = event {
            self.is_approved = approval.is_yes();
        }
        if let CallEvent::Result(end) = event {
            self.has_open_result = end.reach.as_deref().map(Reach::from_name) == Some(Reach::Open);
        }
        self.state = match event {
            CallEvent::Started(start) => {
                self.attempts = self.attempts.max(start.attempt);
                self.claim = claim_hash(start);
                LoggedCallState::Started
            }
            // Nothing ran. The call may still run with other tools.
            CallEvent::Result(end) if end.status.is_rejected() => match self.state {
                // Its attempt was refused after its start: its path had come to lead elsewhere.
                LoggedCallState::Started if end.attempts > 0 => LoggedCallState::NotDone,
                // It was started before this run.
                state => state,
            },
            CallEvent::Result(end)
                if self.state == LoggedCallState::Started && end.is_interrupted() =>
            {
                LoggedCallState::Interrupted
            }
            CallEvent::Result(_) => LoggedCallState::Ended,
            // It was canceled between its start and sending anything, so it certainly had no effect. Otherwise, being
            // skipped doesn't change its state.
            CallEvent::Skipped(_) if self.state == LoggedCallState::Started => {
                LoggedCallState::NotDone
            }
            CallEvent::InDoubt(_) => LoggedCallState::InDoubt,
            // `not_done` counts even if no start follows it. After `done`, the result of the call is recorded next.
            CallEvent::Probed(probe) if self.is_resolvable() && probe.says_not_done() => {
                LoggedCallState::NotDone
            }
            CallEvent::Resolved(resolve) if self.is_resolvable() => {
                if resolve.done {
                    LoggedCallState::Done
                } else {
                    LoggedCallState::NotDone
                }
            }
            CallEvent::Approved(_)
            | CallEvent::Skipped(_)
            | CallEvent::Probed(_)
            | CallEvent::Resolved(_) => self.state,
        };
    }

    fn check_start(self, start: &StartRecord<'_>) -> Result<(), &'static str> {
        if start.needs_approval && !self.is_approved {
            return Err("a call that needs an approval starts without a yes");
        }
        // Another run had claimed it first, so nothing ran.
        let is_claimed_anew =
            self.state == LoggedCallState::Started && self.claim != claim_hash(start);
        let may_start = match self.state {
            LoggedCallState::Requested | LoggedCallState::NotDone => true,
            // The engine retries after an attempt that certainly had no effect, and records how it failed.
            LoggedCallState::Started => is_claimed_anew || start.after.is_some(),
            _ => return Err("a call that has ended starts again"),
        };
        if !may_start {
            return Err("a call that may have had its effect starts again");
        }
        let is_next = start.attempt == self.attempts + 1;
        let is_same = is_claimed_anew && start.attempt == self.attempts;
        if !is_next && !is_same {
            return Err("it isn't the next attempt of its call");
        }
        Ok(())
    }

    fn is_probed(self, resolve: &ResolveRecord<'_>) -> bool {
        self.state == LoggedCallState::Requested && resolve.by.as_deref() == Some("probe")
    }

    fn check_has_no_result(self) -> Result<(), &'static str> {
        if self.is_final() && self.attempts > 0 {
            return Err("its call already has a result");
        }
        Ok(())
    }

    /// A call without an attempt is in doubt if an earlier run has started it.
    fn check_in_doubt(self, end: &CallEndRecord<'_>) -> Result<(), &'static str> {
        self.check_has_no_result()?;
        match self.state {
            LoggedCallState::Requested if end.attempts == 0 => Ok(()),
            LoggedCallState::Requested | LoggedCallState::NotDone | LoggedCallState::Ended => {
                Err("a call that never started is in doubt")
            }
            _ => Ok(()),
        }
    }
}

/// Returns what stands for the claim of a start.
fn claim_hash(start: &StartRecord<'_>) -> Option<u64> {
    start.key.as_deref().map(|key| {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        hasher.finish()
    })
}

// A record that belongs to a call, read as what it says about the call.

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

    /// Returns the end of the call, if the record is one.
    pub fn end(&self) -> Option<&CallEndRecord<'r>> {
        match self {
            Self::Result(end) | Self::Skipped(end) | Self::InDoubt(end) => Some(end),
            Self::Approved(_) | Self::Started(_) | Self::Probed(_) | Self::Resolved(_) => None,
        }
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
