//! Limits of attempts (`timeout`, `retry`, sizes of outputs) and of programs (`limits`).

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools_file::sources::Diagnostics;
use crate::tools_file::spanned::{Field, Spanned};
use crate::tools_file::tables::values::{DurationText, RetryOnText, SizeText};
use crate::types::{CallTimeouts, CommandLimits, Effect, RetryCondition, RetryPolicy, Span};

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

/// Resource limits of a program.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct LimitsFile {
    /// CPU time of one process, in whole seconds.
    pub cpu: Field<DurationText>,
    /// Address space of one process.
    pub memory: Field<SizeText>,
    /// Open file descriptors of one process, including the four that it starts with.
    #[schemars(range(min = 4))]
    pub files: Field<u64>,
    /// Processes that one call may have at the same time.
    #[schemars(range(min = 1))]
    pub processes: Field<u64>,
    /// Size of each file that it writes.
    pub file_size: Field<SizeText>,
}

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

/// Stdin, stdout, stderr and the status descriptor.
const MIN_OPEN_FILES: u64 = 4;

/// Reports limits under which no program could run. Defaults are checked once, where they are written.
pub(crate) fn check_resource_limits(field: &Field<LimitsFile>, diagnostics: &mut Diagnostics<'_>) {
    let Some(limits) = field.value() else {
        return;
    };
    if let Some(cpu) = limits.cpu.spanned()
        && (cpu.value.0.subsec_nanos() > 0 || cpu.value.0.is_zero())
    {
        diagnostics.error(
            cpu.span,
            "CPU time can only be limited in whole seconds",
            "at least 1s",
            "write `1s`, or limit the elapsed time with `timeout`",
        );
    }
    for (size, name) in [(&limits.memory, "memory"), (&limits.file_size, "file_size")] {
        if let Some(size) = size.spanned().filter(|size| size.value.0 == 0) {
            report_zero_limit(size.span, name, diagnostics);
        }
    }
    if let Some(files) = limits
        .files
        .spanned()
        .filter(|files| files.value < MIN_OPEN_FILES)
    {
        diagnostics.error(
            files.span,
            format!(
                "{} file descriptors are fewer than a program starts with",
                files.value
            ),
            "at least 4",
            "stdin, stdout, stderr and the status descriptor are open when it starts",
        );
    }
    if let Some(processes) = limits
        .processes
        .spanned()
        .filter(|processes| processes.value == 0)
    {
        report_zero_limit(processes.span, "processes", diagnostics);
    }
}

fn report_zero_limit(span: Span, name: &str, diagnostics: &mut Diagnostics<'_>) {
    diagnostics.error(
        span,
        format!("no program can run with a `{name}` limit of 0"),
        "must be greater than 0",
        "leave it out for no limit",
    );
}

/// Returns each limit from the command, else from the defaults. A limit that neither has is not set.
pub(crate) fn resolve_resource_limits(
    own: &Field<LimitsFile>,
    defaults: &Field<LimitsFile>,
) -> CommandLimits {
    fn first_limit<T: Copy>(
        layers: [&Field<LimitsFile>; 2],
        select: fn(&LimitsFile) -> &Field<T>,
    ) -> Option<T> {
        let given = layers.into_iter().filter_map(Field::value);
        given.map(select).find_map(|limit| limit.value().copied())
    }
    let layers = [own, defaults];
    let bytes =
        |of: fn(&LimitsFile) -> &Field<SizeText>| first_limit(layers, of).map(|size| size.0);
    let cpu: Option<DurationText> = first_limit(layers, |limits| &limits.cpu);
    CommandLimits {
        cpu: cpu.map(|cpu| Duration::from_secs(cpu.0.as_secs())),
        memory: bytes(|limits| &limits.memory),
        files: first_limit(layers, |limits| &limits.files),
        processes: first_limit(layers, |limits| &limits.processes),
        file_size: bytes(|limits| &limits.file_size),
    }
}
