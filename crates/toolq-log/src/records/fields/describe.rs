//! Metadata of a `describe_start` and a `describe_end`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::records::fields::result::exit_codes;
use crate::records::fields::to_millis;
use crate::records::truncated_text::TruncatedText;
use redact::Mask;
use toolq_core::types::{DescribeResult, Outcome, Status};

/// Metadata of a `describe_start`; a `describe_end` also has how the program ended.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DescribeFields<'a> {
    tool_name: TruncatedText<'a>,
    /// How the program ended, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    /// Why the output can't be used. If set, none of the tool's calls run.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<TruncatedText<'a>>,
    #[serde(skip)]
    mask: &'a Mask,
}

impl<'a> DescribeFields<'a> {
    pub(crate) fn new(tool: &'a str, mask: &'a Mask) -> Self {
        Self {
            tool_name: TruncatedText(tool, mask),
            status: None,
            duration_ms: None,
            attempts: None,
            exit: None,
            signal: None,
            error: None,
            mask,
        }
    }

    pub(crate) fn with_result(
        self,
        result: Option<&'a DescribeResult>,
        outcome: &Outcome,
        (duration, attempts): (Duration, u32),
    ) -> Self {
        let (exit, signal, _) = exit_codes(outcome);
        Self {
            status: Some(outcome.status()),
            duration_ms: Some(to_millis(duration)),
            attempts: Some(attempts),
            exit,
            signal,
            error: match result {
                Some(DescribeResult::Err(why)) => Some(TruncatedText(why, self.mask)),
                Some(DescribeResult::Ok(_)) | None => None,
            },
            ..self
        }
    }
}
