//! Time, size and repetition: the tool's own settings over the file's defaults over toolq's.

use std::time::Duration;

use crate::tools_file::keys::{Bytes, DurationText, RetryFile, TimeoutForm, TimeoutTable};
use crate::tools_file::resolve::diagnostics::Findings;
use crate::tools_file::spanned::{Placed, Setting};
use crate::types::{Effect, Retry, RetryOn, Span, Timeout};

/// Repetitions beyond this are a loop, not a retry.
const MAX_TIMES: u32 = 100;

/// Reports durations that no call could keep. Settings are checked where they stand, once, however many tools use them.
pub(crate) fn check_timeout(setting: &Setting<TimeoutForm>, findings: &mut Findings<'_>) {
    let table = match setting.given() {
        Some(Placed {
            span,
            value: TimeoutForm::Text(after),
            ..
        }) => {
            check_positive(*span, *after, findings);
            return;
        }
        Some(Placed {
            value: TimeoutForm::Table(table),
            ..
        }) => table,
        None => return,
    };
    for duration in [&table.after, &table.slow, &table.total]
        .into_iter()
        .filter_map(Setting::given)
    {
        check_positive(duration.span, duration.value, findings);
    }
    if let (Some(after), Some(total)) = (table.after.value(), table.total.given())
        && total.value.0 < after.0
    {
        findings.error(
            total.span,
            "`total` is shorter than one attempt",
            "less than `after`",
            "`total` holds for all attempts together with the waits between them",
        );
    }
}

fn check_positive(span: Span, duration: DurationText, findings: &mut Findings<'_>) {
    if duration.0 < Duration::from_millis(1) {
        findings.error(
            span,
            "no call can end in no time",
            "at least 1ms",
            "leave the key out for the default",
        );
    }
}

/// Reports what `retry` cannot mean.
pub(crate) fn check_retry(setting: &Setting<RetryFile>, findings: &mut Findings<'_>) {
    let Some(retry) = setting.value() else {
        return;
    };
    if let Some(times) = retry.times.given().filter(|times| times.value > MAX_TIMES) {
        findings.error(
            times.span,
            format!("{} attempts are too many", times.value),
            "at most 100",
            "limit them by `timeout: {total: …}` too",
        );
    }
    if let (Some(first), Some(longest)) = (retry.backoff.given(), retry.max_backoff.value())
        && first.value.0 > longest.0
    {
        findings.error(
            first.span,
            "`backoff` is longer than `max_backoff`",
            "the first wait",
            "the first wait is `backoff`, the longest `max_backoff`",
        );
    }
}

/// Reports a size of nothing.
pub(crate) fn check_output(setting: &Setting<Bytes>, findings: &mut Findings<'_>) {
    if let Some(size) = setting.given().filter(|size| size.value.0 == 0) {
        findings.error(
            size.span,
            "`max_output` would let nothing through",
            "0 bytes",
            "leave it out for 64KiB",
        );
    }
}

/// The first given limit of `layers`, else the default.
pub(crate) fn timeout(layers: [&Setting<TimeoutForm>; 2]) -> Timeout {
    let limit = |of: fn(&TimeoutForm) -> Option<DurationText>| {
        layers
            .into_iter()
            .filter_map(Setting::value)
            .find_map(of)
            .map(|duration| duration.0)
    };
    Timeout {
        after: limit(|form| match form {
            TimeoutForm::Text(after) => Some(*after),
            TimeoutForm::Table(table) => table.after.value().copied(),
        })
        .unwrap_or(Duration::from_secs(30)),
        grace: limit(|form| table(form)?.grace.value().copied()).unwrap_or(Duration::from_secs(2)),
        slow: limit(|form| table(form)?.slow.value().copied()),
        total: limit(|form| table(form)?.total.value().copied()),
    }
}

fn table(form: &TimeoutForm) -> Option<&TimeoutTable> {
    match form {
        TimeoutForm::Table(table) => Some(table),
        TimeoutForm::Text(_) => None,
    }
}

/// No repetition.
pub(crate) fn never() -> Retry {
    Retry {
        times: 0,
        on: Vec::new(),
        backoff: Duration::from_secs(1),
        max_backoff: Duration::from_secs(30),
    }
}

/// When a tool of `effect` is tried again. What may have run is not repeated for a `write` tool: its own list must not
/// ask for it, and of the file's defaults it takes the rest. None is the effect of a request for a model's answer: it has
/// none.
pub(crate) fn retry(
    own: &Setting<RetryFile>,
    defaults: &Setting<RetryFile>,
    effect: Option<Effect>,
    findings: &mut Findings<'_>,
) -> Retry {
    if let (Some(Effect::Write), Some(retry)) = (effect, own.value()) {
        refuse_repetition(retry, findings);
    }
    let layers = || [own, defaults].into_iter().filter_map(Setting::value);
    let duration = |of: fn(&RetryFile) -> &Setting<DurationText>, default| {
        let given = layers().find_map(|retry| of(retry).value());
        given.map_or(Duration::from_secs(default), |duration| duration.0)
    };
    let on = layers()
        .map(|retry| &retry.on)
        .find(|on| on.value().is_some());
    let mut on = on.map_or_else(
        || match effect {
            Some(_) => vec![RetryOn::RateLimited],
            None => vec![RetryOn::RateLimited, RetryOn::Unavailable],
        },
        |on| on.items().map(|reason| reason.value.0).collect(),
    );
    on.retain(|reason| effect != Some(Effect::Write) || *reason == RetryOn::RateLimited);
    Retry {
        times: layers()
            .find_map(|retry| retry.times.value().copied())
            .unwrap_or(1),
        on,
        backoff: duration(|retry| &retry.backoff, 1),
        max_backoff: duration(|retry| &retry.max_backoff, 30),
    }
}

fn refuse_repetition(retry: &RetryFile, findings: &mut Findings<'_>) {
    for reason in retry
        .on
        .items()
        .filter(|reason| reason.value.0 != RetryOn::RateLimited)
    {
        findings.error(
            reason.span,
            "a tool of effect `write` may retry only what surely did not run",
            "it may have run",
            "only `rate_limited` is sure; say `effect: idempotent` if twice is like once, or `effect: read`",
        );
    }
}

pub(crate) const MAX_OUTPUT: u64 = 64 << 10;

pub(crate) const MAX_SAVED: u64 = 64 << 20;
