//! Limits of attempts (`timeout`, sizes of outputs) and of programs (`limits`).

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools_file::context::Diagnostics;
use crate::tools_file::spanned::{Field, Spanned};
use crate::tools_file::tables::values::{DurationText, Scalar, SizeText};
use crate::types::{CallTimeouts, CommandLimits, Span};

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
