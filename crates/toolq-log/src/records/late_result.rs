//! Metadata of a `late_result`.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::records::recorded_text::recorded_text;
use redact::Mask;
use toolq_core::types::CallRef;

/// Metadata of a `late_result`: what a host process sent after the call was answered without it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct LateResultRecord<'a> {
    /// The id of the call.
    #[serde(borrow)]
    pub tool_use_id: Cow<'a, str>,
    /// Its tool.
    #[serde(borrow)]
    pub tool_name: Cow<'a, str>,
    /// Whether the result says that the call failed.
    pub is_error: bool,
}

impl<'a> LateResultRecord<'a> {
    pub(crate) fn new(call: &'a CallRef, is_error: bool, mask: &Mask) -> Self {
        Self {
            tool_use_id: recorded_text(&call.tool_use_id, mask),
            tool_name: recorded_text(&call.tool_name, mask),
            is_error,
        }
    }
}
