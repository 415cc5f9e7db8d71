//! `limits`: what a program may use, the command's own over the file's defaults.

use std::time::Duration;

use crate::tools_file::keys::{Bytes, DurationText, LimitsFile};
use crate::tools_file::resolve::diagnostics::Findings;
use crate::tools_file::spanned::Setting;
use crate::types::{Limits, Span};

/// Standard input, output and error, and the status descriptor.
const GIVEN_FILES: u64 = 4;

/// Reports limits under which no program could run. They are checked where they stand, once.
pub(crate) fn check(setting: &Setting<LimitsFile>, findings: &mut Findings<'_>) {
    let Some(limits) = setting.value() else {
        return;
    };
    if let Some(cpu) = limits.cpu.given()
        && (cpu.value.0.subsec_nanos() > 0 || cpu.value.0.is_zero())
    {
        findings.error(
            cpu.span,
            "processor time is limited in whole seconds",
            "at least 1s",
            "write `1s`, or limit the time that passes by `timeout`",
        );
    }
    for (size, name) in [(&limits.memory, "memory"), (&limits.file_size, "file_size")] {
        if let Some(size) = size.given().filter(|size| size.value.0 == 0) {
            refuse(size.span, name, findings);
        }
    }
    if let Some(files) = limits
        .files
        .given()
        .filter(|files| files.value < GIVEN_FILES)
    {
        findings.error(
            files.span,
            format!(
                "{} descriptors are less than a program is given",
                files.value
            ),
            "at least 4",
            "standard input, output and error and the status descriptor are open when it starts",
        );
    }
    if let Some(processes) = limits
        .processes
        .given()
        .filter(|processes| processes.value == 0)
    {
        refuse(processes.span, "processes", findings);
    }
}

fn refuse(span: Span, name: &str, findings: &mut Findings<'_>) {
    findings.error(
        span,
        format!("no program runs with a `{name}` of 0"),
        "nothing",
        "leave it out for no limit",
    );
}

/// The first given of each limit, else none.
pub(crate) fn limits(own: &Setting<LimitsFile>, defaults: &Setting<LimitsFile>) -> Limits {
    fn first<T: Copy>(
        layers: [&Setting<LimitsFile>; 2],
        of: fn(&LimitsFile) -> &Setting<T>,
    ) -> Option<T> {
        let given = layers.into_iter().filter_map(Setting::value);
        given.map(of).find_map(|limit| limit.value().copied())
    }
    let layers = [own, defaults];
    let bytes = |of: fn(&LimitsFile) -> &Setting<Bytes>| first(layers, of).map(|size| size.0);
    let cpu: Option<DurationText> = first(layers, |limits| &limits.cpu);
    Limits {
        cpu: cpu.map(|cpu| Duration::from_secs(cpu.0.as_secs())),
        memory: bytes(|limits| &limits.memory),
        files: first(layers, |limits| &limits.files),
        processes: first(layers, |limits| &limits.processes),
        file_size: bytes(|limits| &limits.file_size),
    }
}
