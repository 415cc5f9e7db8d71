use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::records::fields::ms;
use crate::records::fields::result::ending;
use crate::records::truncated_text::Brief;
use redact::Mask;
use toolq_core::types::{Outcome, Said};

/// Metadata of a `describe_start`, and, with how it ended, of a `describe_end`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DescribeFields<'a> {
    tool_name: Brief<'a>,
    /// How the program ended, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    /// Why it said nothing that can be used, so that none of the tool's calls runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Brief<'a>>,
    #[serde(skip)]
    mask: &'a Mask,
}

impl<'a> DescribeFields<'a> {
    pub(crate) fn of(tool: &'a str, mask: &'a Mask) -> Self {
        Self {
            tool_name: Brief(tool, mask),
            status: None,
            duration_ms: None,
            attempts: None,
            exit: None,
            signal: None,
            error: None,
            mask,
        }
    }

    pub(crate) fn ended(
        self,
        said: Option<&'a Said>,
        outcome: &Outcome,
        (duration, attempts): (Duration, u32),
    ) -> Self {
        let (exit, signal, _) = ending(outcome);
        Self {
            status: Some(outcome.status()),
            duration_ms: Some(ms(duration)),
            attempts: Some(attempts),
            exit,
            signal,
            error: match said {
                Some(Said::Nothing(why)) => Some(Brief(why, self.mask)),
                Some(Said::Well(_)) | None => None,
            },
            ..self
        }
    }
}
