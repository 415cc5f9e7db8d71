//! Resolves time limits, output size and retries: from the tool, else the file's defaults, else toolq's.

use std::time::Duration;

use crate::tools_file::keys::{DurationText, RetryFile, SizeText, TimeoutForm, TimeoutTable};
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::spanned::{Field, Spanned};
use crate::types::{CallTimeouts, Effect, RetryCondition, RetryPolicy, Span};

/// More retries than this are most likely a mistake.
const MAX_RETRIES: u32 = 100;

/// Reports durations that no call could meet. Defaults are checked once, where they are written, no matter how many
/// tools use them.
pub(crate) fn check_timeout(field: &Field<TimeoutForm>, diagnostics: &mut Diagnostics<'_>) {
    let table = match field.spanned() {
        Some(Spanned {
            span,
            value: TimeoutForm::Text(after),
            ..
        }) => {
            check_positive(*span, *after, diagnostics);
            return;
        }
        Some(Spanned {
            value: TimeoutForm::Table(table),
            ..
        }) => table,
        None => return,
    };
    for duration in [&table.after, &table.slow, &table.total]
        .into_iter()
        .filter_map(Field::spanned)
    {
        check_positive(duration.span, duration.value, diagnostics);
    }
    if let (Some(after), Some(total)) = (table.after.value(), table.total.spanned())
        && total.value.0 < after.0
    {
        diagnostics.error(
            total.span,
            "`total` is shorter than one attempt",
            "less than `after`",
            "`total` covers all attempts and the waits between them",
        );
    }
}

fn check_positive(span: Span, duration: DurationText, diagnostics: &mut Diagnostics<'_>) {
    if duration.0 < Duration::from_millis(1) {
        diagnostics.error(
            span,
            "no call can finish within this time",
            "at least 1ms",
            "leave the key out for the default",
        );
    }
}

/// Reports values in `retry` that make no sense.
pub(crate) fn check_retry(field: &Field<RetryFile>, diagnostics: &mut Diagnostics<'_>) {
    let Some(retry) = field.value() else {
        return;
    };
    if let Some(times) = retry
        .times
        .spanned()
        .filter(|times| times.value > MAX_RETRIES)
    {
        diagnostics.error(
            times.span,
            format!("{} retries are too many", times.value),
            "at most 100",
            "`timeout: {total: …}` limits retries by time",
        );
    }
    if let (Some(first), Some(longest)) = (retry.backoff.spanned(), retry.max_backoff.value())
        && first.value.0 > longest.0
    {
        diagnostics.error(
            first.span,
            "`backoff` is longer than `max_backoff`",
            "the first wait",
            "`backoff` is the first wait and `max_backoff` the longest",
        );
    }
}

/// Reports a size of zero.
pub(crate) fn check_max_output(field: &Field<SizeText>, diagnostics: &mut Diagnostics<'_>) {
    if let Some(size) = field.spanned().filter(|size| size.value.0 == 0) {
        diagnostics.error(
            size.span,
            "`max_output` would let nothing through",
            "0 bytes",
            "leave it out for the default of 64KiB",
        );
    }
}

/// Returns each limit from the first of `layers` that has it, else its default.
pub(crate) fn resolve_timeout(layers: [&Field<TimeoutForm>; 2]) -> CallTimeouts {
    let limit = |select: fn(&TimeoutForm) -> Option<DurationText>| {
        layers
            .into_iter()
            .filter_map(Field::value)
            .find_map(select)
            .map(|duration| duration.0)
    };
    CallTimeouts {
        after: limit(|form| match form {
            TimeoutForm::Text(after) => Some(*after),
            TimeoutForm::Table(table) => table.after.value().copied(),
        })
        .unwrap_or(Duration::from_secs(30)),
        kill_grace: limit(|form| timeout_table(form)?.grace.value().copied())
            .unwrap_or(Duration::from_secs(2)),
        slow_after: limit(|form| timeout_table(form)?.slow.value().copied()),
        total: limit(|form| timeout_table(form)?.total.value().copied()),
    }
}

fn timeout_table(form: &TimeoutForm) -> Option<&TimeoutTable> {
    match form {
        TimeoutForm::Table(table) => Some(table),
        TimeoutForm::Text(_) => None,
    }
}

/// Returns a policy without retries.
pub(crate) fn no_retry() -> RetryPolicy {
    RetryPolicy {
        max_retries: 0,
        conditions: Vec::new(),
        initial_backoff: Duration::from_secs(1),
        max_backoff: Duration::from_secs(30),
    }
}

/// Returns when calls of a tool with `effect` are retried. `effect` is `None` for requests to a model's API, which have
/// no effect.
///
/// A call of a `write` tool that may have run is never repeated. Conditions that would do so are an error in the tool's
/// own list, and are dropped from the file's defaults.
pub(crate) fn resolve_retry(
    own: &Field<RetryFile>,
    defaults: &Field<RetryFile>,
    effect: Option<Effect>,
    diagnostics: &mut Diagnostics<'_>,
) -> RetryPolicy {
    if let (Some(Effect::Write), Some(retry)) = (effect, own.value()) {
        reject_unsafe_retry(retry, diagnostics);
    }
    let layers = || [own, defaults].into_iter().filter_map(Field::value);
    let duration = |select: fn(&RetryFile) -> &Field<DurationText>, default| {
        let given = layers().find_map(|retry| select(retry).value());
        given.map_or(Duration::from_secs(default), |duration| duration.0)
    };
    let on = layers()
        .map(|retry| &retry.on)
        .find(|on| on.value().is_some());
    let mut on = on.map_or_else(
        || match effect {
            Some(_) => vec![RetryCondition::RateLimited],
            None => vec![RetryCondition::RateLimited, RetryCondition::Unavailable],
        },
        |on| on.items().map(|reason| reason.value.0).collect(),
    );
    on.retain(|reason| effect != Some(Effect::Write) || *reason == RetryCondition::RateLimited);
    RetryPolicy {
        max_retries: layers()
            .find_map(|retry| retry.times.value().copied())
            .unwrap_or(1),
        conditions: on,
        initial_backoff: duration(|retry| &retry.backoff, 1),
        max_backoff: duration(|retry| &retry.max_backoff, 30),
    }
}

fn reject_unsafe_retry(retry: &RetryFile, diagnostics: &mut Diagnostics<'_>) {
    for reason in retry
        .on
        .items()
        .filter(|reason| reason.value.0 != RetryCondition::RateLimited)
    {
        diagnostics.error(
            reason.span,
            "a tool with effect `write` may only retry calls that surely did not run",
            "the call may have run",
            "only `rate_limited` is certain; set `effect: idempotent` if a call may be repeated, or `effect: read`",
        );
    }
}

pub(crate) const DEFAULT_MAX_OUTPUT_BYTES: u64 = 64 << 10;

pub(crate) const DEFAULT_MAX_SAVED_BYTES: u64 = 64 << 20;
