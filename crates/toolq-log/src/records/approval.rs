//! Metadata of an `approval`.

use std::borrow::Cow;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::memory::{EntryName, Settlement};
use crate::records::call_end::ProcessExit;
use crate::records::record::recorded_text;
use redact::Mask;
use toolq_core::text::to_millis;
use toolq_core::types::{Approval, ApprovalDecision, CallRef, Outcome, ProbeFinding, Status};

/// Metadata of an `approval`: what was said about a call that starts only after a yes.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRecord<'a> {
    /// The id of the call.
    #[serde(borrow)]
    pub tool_use_id: Cow<'a, str>,
    /// Its tool.
    #[serde(borrow)]
    pub tool_name: Cow<'a, str>,
    /// `yes` or `no`.
    #[serde(borrow)]
    pub decision: Cow<'a, str>,
    /// By what means: `all` (a flag), `program`, `terminal`, `plan`, `client` (of `toolq serve`), `control` (of
    /// `toolq run --follow --control`) or `callback` (of the library).
    #[serde(borrow)]
    pub by: Cow<'a, str>,
    /// The id of the plan.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Cow<'a, str>>,
    /// What the client calls itself.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Cow<'a, str>>,
    /// The reason for a no, or a note for a yes.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// The user who was asked, if that is known.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Cow<'a, str>>,
}

impl<'a> ApprovalRecord<'a> {
    pub(crate) fn new(call: &'a CallRef, approval: &'a Approval, mask: &Mask) -> Self {
        let text = |text: &'a Option<String>| text.as_deref().map(|text| recorded_text(text, mask));
        Self {
            tool_use_id: recorded_text(&call.tool_use_id, mask),
            tool_name: recorded_text(&call.tool_name, mask),
            decision: approval.decision.name().into(),
            by: approval.means.name().into(),
            plan: approval.means.plan().map(Into::into),
            client: approval
                .means
                .client()
                .map(|name| recorded_text(name, mask)),
            reason: text(&approval.reason),
            user: text(&approval.user),
        }
    }

    /// Returns whether the call may start.
    pub fn is_yes(&self) -> bool {
        ApprovalDecision::from_name(&self.decision) == ApprovalDecision::Yes
    }
}

// Metadata of records that settle a call in doubt: `probe_start`, `probe_end` and `resolve`.

/// Metadata of a `probe_start`; a `probe_end` also has what the probe found.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProbeRecord<'a> {
    /// The id of the call in doubt.
    #[serde(borrow)]
    pub tool_use_id: Cow<'a, str>,
    /// Its tool.
    #[serde(borrow)]
    pub tool_name: Cow<'a, str>,
    /// `done`, `not_done` or `unknown`.
    #[serde(borrow)]
    pub finding: Option<Cow<'a, str>>,
    /// How the probe ended, in one word.
    pub status: Option<Status>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// What it ended with.
    #[serde(flatten)]
    pub exit: ProcessExit,
}

impl<'a> ProbeRecord<'a> {
    pub(crate) fn new(call: &'a CallRef, mask: &Mask) -> Self {
        Self {
            tool_use_id: recorded_text(&call.tool_use_id, mask),
            tool_name: recorded_text(&call.tool_name, mask),
            finding: None,
            status: None,
            duration_ms: None,
            exit: ProcessExit::default(),
        }
    }

    pub(crate) fn with_finding(
        self,
        finding: ProbeFinding,
        outcome: &Outcome,
        duration: Duration,
    ) -> Self {
        Self {
            finding: Some(finding.name().into()),
            status: Some(outcome.status()),
            duration_ms: Some(to_millis(duration)),
            exit: ProcessExit::from_outcome(outcome),
            ..self
        }
    }

    /// Returns whether the call surely wasn't done.
    pub(crate) fn says_not_done(&self) -> bool {
        self.finding.as_deref() == Some(ProbeFinding::NotDone.name())
    }
}

/// Metadata of a `resolve`. Its content is the result that the call has from now on.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ResolveRecord<'a> {
    /// The id of the call, as recorded.
    #[serde(borrow)]
    pub tool_use_id: Cow<'a, str>,
    /// Its tool.
    #[serde(borrow)]
    pub tool_name: Cow<'a, str>,
    /// What stands for the attempt in the memory.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Cow<'a, str>>,
    /// Whether the call did its work.
    pub done: bool,
    /// Who said so: `person` or `probe`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Cow<'a, str>>,
    /// Whether the result is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// The user's reason.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Cow<'a, str>>,
}

impl<'a> ResolveRecord<'a> {
    /// Says how the attempt with this name was settled.
    pub(crate) fn new(
        (tool_use_id, tool_name): (impl Into<Cow<'a, str>>, impl Into<Cow<'a, str>>),
        name: &EntryName,
        settlement: &'a Settlement,
    ) -> Self {
        Self {
            tool_use_id: tool_use_id.into(),
            tool_name: tool_name.into(),
            key: Some(name.to_string().into()),
            done: settlement.done,
            by: Some((&*settlement.by).into()),
            is_error: settlement.done.then_some(settlement.is_error),
            note: settlement.note.as_deref().map(Into::into),
        }
    }
}
