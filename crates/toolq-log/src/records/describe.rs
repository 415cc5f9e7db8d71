//! Metadata of a `describe_start` and a `describe_end`.

use std::borrow::Cow;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::records::call_end::ProcessExit;
use crate::records::record::recorded_text;
use redact::Mask;
use toolq_core::text::to_millis;
use toolq_core::types::{DescribeResult, Outcome, Status};

/// Metadata of a `describe_start`; a `describe_end` also has how the program ended.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct DescribeRecord<'a> {
    /// The tool that describes itself.
    #[serde(borrow)]
    pub tool_name: Cow<'a, str>,
    /// How the program ended, in one word.
    pub status: Option<Status>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// How many attempts were started.
    pub attempts: Option<u32>,
    /// What the program ended with.
    #[serde(flatten)]
    pub exit: ProcessExit,
    /// Why the output can't be used. If set, none of the tool's calls run.
    #[serde(borrow)]
    pub error: Option<Cow<'a, str>>,
}

impl<'a> DescribeRecord<'a> {
    pub(crate) fn new(tool: &'a str, mask: &Mask) -> Self {
        Self {
            tool_name: recorded_text(tool, mask),
            status: None,
            duration_ms: None,
            attempts: None,
            exit: ProcessExit::default(),
            error: None,
        }
    }

    pub(crate) fn with_result(
        self,
        result: Option<&'a DescribeResult>,
        outcome: &Outcome,
        duration: Duration,
        attempts: u32,
        mask: &Mask,
    ) -> Self {
        Self {
            status: Some(outcome.status()),
            duration_ms: Some(to_millis(duration)),
            attempts: Some(attempts),
            exit: ProcessExit::from_outcome(outcome),
            error: match result {
                Some(DescribeResult::Err(why)) => Some(recorded_text(why, mask)),
                Some(DescribeResult::Ok(_)) | None => None,
            },
            ..self
        }
    }
}
