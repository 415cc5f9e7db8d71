//! Limits of attempts (`timeout`, sizes of outputs) and of programs (`limits`), and when attempts are repeated (`retry`).

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools_file::context::Diagnostics;
use crate::tools_file::spanned::{Field, Spanned};
use crate::tools_file::tables::values::{DurationText, RetryOnText, Scalar, SizeText};
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

pub(crate) fn layer_timeouts(
    upper: &Spanned<TimeoutForm>,
    lower: &Spanned<TimeoutForm>,
) -> TimeoutForm {
    let (upper, lower) = (timeout_table(upper), timeout_table(lower));
    TimeoutForm::Table(TimeoutTable {
        after: upper.after.or(&lower.after),
        grace: upper.grace.or(&lower.grace),
        slow: upper.slow.or(&lower.slow),
        total: upper.total.or(&lower.total),
    })
}

pub(crate) fn layer_limits(upper: &Spanned<LimitsFile>, lower: &Spanned<LimitsFile>) -> LimitsFile {
    let (upper, lower) = (&upper.value, &lower.value);
    LimitsFile {
        cpu: upper.cpu.or(&lower.cpu),
        memory: upper.memory.or(&lower.memory),
        files: upper.files.or(&lower.files),
        processes: upper.processes.or(&lower.processes),
        file_size: upper.file_size.or(&lower.file_size),
    }
}

const MIN_DURATION: DurationText = Scalar(Duration::from_millis(1));

/// Reports durations that no call could meet.
pub(crate) fn check_timeout(field: &Field<TimeoutForm>, diagnostics: &mut Diagnostics) {
    let Some(table) = field.spanned().map(timeout_table) else {
        return;
    };
    for duration in [&table.after, &table.slow, &table.total]
        .into_iter()
        .filter_map(|field| field.outside(MIN_DURATION..))
    {
        diagnostics.error(
            (duration.span, "at least 1ms"),
            "no call can finish within this time",
            "leave the key out for the default",
        );
    }
    if let (Some(after), Some(total)) = (table.after.value(), table.total.spanned())
        && total.value.0 < after.0
    {
        diagnostics.error(
            (total.span, "less than `after`"),
            "`total` is shorter than one attempt",
            "`total` covers all attempts and the waits between them",
        );
    }
}

/// Reports a size of zero.
pub(crate) fn check_max_output(field: &Field<SizeText>, diagnostics: &mut Diagnostics) {
    if let Some(size) = field.outside(Scalar(1)..) {
        diagnostics.error(
            (size.span, "0 bytes"),
            "`max_output` would let nothing through",
            "leave it out for the default of 64KiB",
        );
    }
}

/// Returns each limit, or else its default.
pub(crate) fn resolve_timeout(field: &Field<TimeoutForm>) -> CallTimeouts {
    let table = field.spanned().map(timeout_table).unwrap_or_default();
    let limit = |field: &Field<DurationText>| field.value().map(|duration| duration.0);
    let default = CallTimeouts::default();
    CallTimeouts {
        after: limit(&table.after).unwrap_or(default.after),
        kill_grace: limit(&table.grace).unwrap_or(default.kill_grace),
        slow_after: limit(&table.slow),
        total: limit(&table.total),
    }
}

/// Returns a form as a table.
fn timeout_table(form: &Spanned<TimeoutForm>) -> TimeoutTable {
    match &form.value {
        TimeoutForm::Table(table) => table.clone(),
        TimeoutForm::Text(after) => TimeoutTable {
            after: Field::Valid(Box::new(Spanned {
                key_span: form.key_span,
                span: form.span,
                value: *after,
            })),
            ..TimeoutTable::default()
        },
    }
}

/// Stdin, stdout, stderr and the status descriptor.
const MIN_OPEN_FILES: u64 = 4;

/// Reports limits under which no program could run.
pub(crate) fn check_resource_limits(field: &Field<LimitsFile>, diagnostics: &mut Diagnostics) {
    let Some(limits) = field.value() else {
        return;
    };
    if let Some(cpu) = limits.cpu.spanned()
        && (cpu.value.0.subsec_nanos() > 0 || cpu.value.0.is_zero())
    {
        diagnostics.error(
            (cpu.span, "at least 1s"),
            "CPU time can only be limited in whole seconds",
            "write `1s`, or limit the elapsed time with `timeout`",
        );
    }
    for (size, name) in [(&limits.memory, "memory"), (&limits.file_size, "file_size")] {
        if let Some(size) = size.outside(Scalar(1)..) {
            report_zero_limit(size.span, name, diagnostics);
        }
    }
    if let Some(files) = limits.files.outside(MIN_OPEN_FILES..) {
        diagnostics.error(
            (files.span, "at least 4"),
            format!(
                "{} file descriptors are fewer than a program starts with",
                files.value
            ),
            "stdin, stdout, stderr and the status descriptor are open when it starts",
        );
    }
    if let Some(processes) = limits.processes.outside(1..) {
        report_zero_limit(processes.span, "processes", diagnostics);
    }
}

fn report_zero_limit(span: Span, name: &str, diagnostics: &mut Diagnostics) {
    diagnostics.error(
        (span, "must be greater than 0"),
        format!("no program can run with a `{name}` limit of 0"),
        "leave it out for no limit",
    );
}

/// Returns the limits. One that is missing is not set.
pub(crate) fn resolve_resource_limits(field: &Field<LimitsFile>) -> CommandLimits {
    let Some(limits) = field.value() else {
        return CommandLimits::default();
    };
    let bytes = |field: &Field<SizeText>| field.value().map(|size| size.0);
    CommandLimits {
        cpu: limits
            .cpu
            .value()
            .map(|cpu| Duration::from_secs(cpu.0.as_secs())),
        memory: bytes(&limits.memory),
        files: limits.files.copied(),
        processes: limits.processes.copied(),
        file_size: bytes(&limits.file_size),
    }
}

// `retry`: when a failed attempt is repeated, and how long toolq waits before.

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
