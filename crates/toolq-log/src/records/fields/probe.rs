//! Metadata of records that settle a call in doubt: `probe_start`, `probe_end` and `resolve`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::records::fields::result::exit_codes;
use crate::records::fields::to_millis;
use crate::records::truncated_text::TruncatedText;
use redact::Mask;
use toolq_core::types::{CallRef, Outcome, ProbeFinding, Status};

/// Metadata of a `probe_start`; a `probe_end` also has what the probe found.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProbeFields<'a> {
    tool_use_id: TruncatedText<'a>,
    tool_name: TruncatedText<'a>,
    /// `done`, `not_done` or `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    finding: Option<&'static str>,
    /// How the probe ended, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
}

impl<'a> ProbeFields<'a> {
    pub(crate) fn new(call: &'a CallRef, mask: &'a Mask) -> Self {
        Self {
            tool_use_id: TruncatedText(&call.tool_use_id, mask),
            tool_name: TruncatedText(&call.tool_name, mask),
            finding: None,
            status: None,
            duration_ms: None,
            exit: None,
            signal: None,
        }
    }

    pub(crate) fn with_finding(
        self,
        finding: ProbeFinding,
        outcome: &Outcome,
        duration: Duration,
    ) -> Self {
        let (exit, signal, _) = exit_codes(outcome);
        Self {
            finding: Some(finding.name()),
            status: Some(outcome.status()),
            duration_ms: Some(to_millis(duration)),
            exit,
            signal,
            ..self
        }
    }
}

/// Metadata of a `resolve`. Its content is the result that the call has from now on.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ResolveFields<'a> {
    pub(crate) tool_use_id: &'a str,
    pub(crate) tool_name: &'a str,
    pub(crate) done: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) is_error: Option<bool>,
    /// The user's reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<&'a str>,
}
