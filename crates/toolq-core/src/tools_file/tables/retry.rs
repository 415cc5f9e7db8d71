//! `retry`: when a failed attempt is repeated, and how long toolq waits before.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools_file::context::Diagnostics;
use crate::tools_file::spanned::{Field, Spanned};
use crate::tools_file::tables::values::{DurationText, RetryOnText};
use crate::types::{Effect, RetryCondition, RetryPolicy};

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

pub(crate) fn layer_retries(upper: &Spanned<RetryFile>, lower: &Spanned<RetryFile>) -> RetryFile {
    let (upper, lower) = (&upper.value, &lower.value);
    RetryFile {
        times: upper.times.or(&lower.times),
        on: upper.on.or(&lower.on),
        backoff: upper.backoff.or(&lower.backoff),
        max_backoff: upper.max_backoff.or(&lower.max_backoff),
    }
}

/// More retries than this are most likely a mistake.
pub(crate) const MAX_RETRIES: u32 = 100;

/// Reports values in `retry` that make no sense.
pub(crate) fn check_retry(field: &Field<RetryFile>, diagnostics: &mut Diagnostics) {
    let Some(retry) = field.value() else {
        return;
    };
    if let Some(times) = retry.times.outside(..=MAX_RETRIES) {
        diagnostics.error(
            (times.span, "at most 100"),
            format!("{} retries are too many", times.value),
            "`timeout: {total: …}` limits retries by time",
        );
    }
    if let (Some(first), Some(longest)) = (retry.backoff.spanned(), retry.max_backoff.value())
        && first.value.0 > longest.0
    {
        diagnostics.error(
            (first.span, "the first wait"),
            "`backoff` is longer than `max_backoff`",
            "`backoff` is the first wait and `max_backoff` the longest",
        );
    }
}

/// Returns when calls of a tool with `effect` are retried. `effect` is `None` for requests to a model's API, which have
/// no effect.
///
/// A call of a `write` tool that may have run is never repeated. Conditions that would do so are an error in the tool's
/// own list (see [`reject_unsafe_retry`]), and are dropped where they are inherited.
pub(crate) fn resolve_retry(field: &Field<RetryFile>, effect: Option<Effect>) -> RetryPolicy {
    let no_keys = RetryFile::default();
    let retry = field.value().unwrap_or(&no_keys);
    let default = RetryPolicy::default();
    let mut conditions = default.conditions;
    if retry.on.value().is_some() {
        conditions = retry.on.items().map(|reason| reason.value.0).collect();
    } else if effect.is_none() {
        conditions.push(RetryCondition::Unavailable);
    }
    conditions
        .retain(|reason| effect != Some(Effect::Write) || *reason == RetryCondition::RateLimited);
    let wait = |field: &Field<DurationText>, default| field.value().map_or(default, |wait| wait.0);
    RetryPolicy {
        max_retries: retry.times.copied().unwrap_or(default.max_retries),
        conditions,
        initial_backoff: wait(&retry.backoff, default.initial_backoff),
        max_backoff: wait(&retry.max_backoff, default.max_backoff),
    }
}

/// Reports conditions in a tool's own `retry` under which a call with side effects would be repeated.
pub(crate) fn reject_unsafe_retry(field: &Field<RetryFile>, diagnostics: &mut Diagnostics) {
    let retry = field.value().into_iter();
    for reason in retry
        .flat_map(|retry| retry.on.items())
        .filter(|reason| reason.value.0 != RetryCondition::RateLimited)
    {
        diagnostics.error(
            (reason.span, "the call may have run"),
            "a tool with effect `write` may only retry calls that surely did not run",
            "only `rate_limited` is certain; set `effect: idempotent` if a call may be repeated, or `effect: read`",
        );
    }
}
