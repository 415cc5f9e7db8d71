//! The calls of a turn that don't run because it is known what became of them.

use crate::answer::describe_failure;
use crate::text::format_time;
use crate::types::{Call, CheckedCall, DoubtCause, Outcome, RestoredResult, Status};
use redact::Mask;

/// A call that the memory or the input answers.
#[derive(Debug, Clone, Copy)]
pub struct RememberedCall<'a> {
    /// The call as requested.
    pub call: &'a Call,
    /// What it is answered with.
    pub outcome: &'a Outcome,
}

impl<'a> RememberedCall<'a> {
    /// Returns the call if it is known what became of it.
    pub(crate) fn of(checked: &'a CheckedCall) -> Option<Self> {
        let outcome = checked.known.as_deref()?;
        let call = &checked.call;
        Some(Self { call, outcome })
    }

    /// Whether it may have had its effect, and nobody knows.
    pub fn is_in_doubt(&self) -> bool {
        self.outcome.is_in_doubt()
    }

    /// Returns the status of its result.
    pub fn status(&self) -> Status {
        self.outcome.status()
    }

    /// Returns when what is known of it happened, in milliseconds since 1970, and the log that says so.
    pub fn source(&self) -> Option<(u64, String)> {
        match self.outcome {
            Outcome::Restored(RestoredResult {
                source: Some(source),
                ..
            }) => Some((source.ended_ms, source.log.display().to_string())),
            Outcome::InDoubt {
                cause: DoubtCause::EndNotLogged(Some(start)),
                ..
            } => Some((start.started_ms?, start.log.display().to_string())),
            _ => None,
        }
    }

    /// `ok, ran 2026-01-01 12:03:00 UTC (LOG)`, `in doubt, started 2026-01-01 12:03:00 UTC (LOG)`, or `settled 2026-01-01 12:03:00 UTC
    /// (LOG)`.
    pub fn describe(&self, names_log: bool, mask: &Mask) -> String {
        let label = self.status().label();
        let what = match self.outcome {
            Outcome::Restored(restored) if restored.status == Status::Resolved => {
                "settled".to_owned()
            }
            Outcome::Restored(_) => format!("{label}, ran"),
            _ => format!("{label}, started"),
        };
        let at = self.source().map(|(ms, log)| {
            let log = if names_log {
                format!(" ({log})")
            } else {
                String::new()
            };
            format!("{what} {}{log}", format_time(ms))
        });
        let text = match self.outcome {
            Outcome::Restored(_) | Outcome::InDoubt { .. } => at.unwrap_or(label),
            outcome => describe_failure(self.call, None, outcome),
        };
        mask.apply(&text).into_owned()
    }
}
