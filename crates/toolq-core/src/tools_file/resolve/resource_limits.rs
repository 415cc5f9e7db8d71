//! Resolves `limits`, the resources that a program may use: from the command, else from the file's defaults.

use std::time::Duration;

use crate::tools_file::keys::{DurationText, LimitsFile, SizeText};
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::spanned::Field;
use crate::types::{CommandLimits, Span};

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
