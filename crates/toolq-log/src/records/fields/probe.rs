use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::records::fields::ms;
use crate::records::fields::result::ending;
use crate::records::truncated_text::Brief;
use redact::Mask;
use toolq_core::types::{CallRef, Finding, Outcome};

/// Metadata of a `probe_start`, and, with what the probe found, of a `probe_end`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProbeFields<'a> {
    tool_use_id: Brief<'a>,
    tool_name: Brief<'a>,
    /// `done`, `not_done` or `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    finding: Option<&'static str>,
    /// How the probe ended, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
}

impl<'a> ProbeFields<'a> {
    pub(crate) fn of(call: &'a CallRef, mask: &'a Mask) -> Self {
        Self {
            tool_use_id: Brief(&call.tool_use_id, mask),
            tool_name: Brief(&call.tool_name, mask),
            finding: None,
            status: None,
            duration_ms: None,
            exit: None,
            signal: None,
        }
    }

    pub(crate) fn ended(self, finding: Finding, outcome: &Outcome, duration: Duration) -> Self {
        let (exit, signal, _) = ending(outcome);
        Self {
            finding: Some(finding.name()),
            status: Some(outcome.status()),
            duration_ms: Some(ms(duration)),
            exit,
            signal,
            ..self
        }
    }
}

/// Metadata of a `resolve`. Its content is the result that the call has from then on.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ResolveFields<'a> {
    pub(crate) tool_use_id: &'a str,
    pub(crate) tool_name: &'a str,
    pub(crate) done: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) is_error: Option<bool>,
    /// Why somebody thinks so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<&'a str>,
}
