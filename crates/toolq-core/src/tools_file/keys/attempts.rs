//! The keys that say how long an attempt may take, and when to try again.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools_file::keys::values::{DurationText, RetryOnText};
use crate::tools_file::spanned::Field;

/// Time limits.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(
    rename = "$kind",
    rename_all = "snake_case",
    expecting = "a duration with its unit such as `30s`, or a table such as `{after: 30s, total: 2m}`"
)]
#[schemars(rename = "Timeout", untagged)]
pub enum TimeoutForm {
    // Accepts a number too, so that the error can say that the unit is missing.
    /// Time limit of one attempt.
    #[serde(alias = "number")]
    Text(DurationText),
    /// Time limits by name.
    Table(TimeoutTable),
}

/// Time limits by name.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct TimeoutTable {
    /// Time limit of one attempt. Default: 30s.
    pub after: Field<DurationText>,
    /// Time between asking a process to terminate and killing it. Default: 2s.
    pub grace: Field<DurationText>,
    /// Time after which the progress text says that the call is still running.
    pub slow: Field<DurationText>,
    /// Time limit of all attempts together, including the waits between them.
    pub total: Field<DurationText>,
}

/// When to retry a failed attempt.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct RetryFile {
    /// Maximum number of retries. Default: 1.
    #[schemars(range(max = 100))]
    pub times: Field<u32>,
    /// Failures to retry. Default: `rate_limited`, the only one that a `write` tool may retry. For an agent, also
    /// `unavailable`.
    pub on: Field<Vec<Field<RetryOnText>>>,
    /// Wait before the first retry, doubled for each further one. Default: 1s.
    pub backoff: Field<DurationText>,
    /// Longest wait between attempts. Default: 30s.
    pub max_backoff: Field<DurationText>,
}
