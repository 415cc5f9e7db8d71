//! Metadata of an `approval`.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::records::recorded_text::recorded_text;
use redact::Mask;
use toolq_core::types::{Approval, ApprovalDecision, CallRef};

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
