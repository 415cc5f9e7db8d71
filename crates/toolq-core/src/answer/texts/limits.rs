//! Names a tool's `limits`, and explains what a model can do when one, or the `timeout`, is exceeded.

use std::time::Duration;

use crate::answer::texts::{ErrorText, partial_output_text};
use crate::text::{format_bytes, format_duration};
use crate::types::{Backing, CallEnding, CommandLimits, LimitKind, Tool};

/// Formats a limit as in tools.yaml: `limits.cpu is 10s`.
pub(crate) fn format_limit(limit: LimitKind, tool: Option<&Tool>) -> String {
    let limits = tool.map(command_limits).unwrap_or_default();
    let value = match limit {
        LimitKind::Cpu => limits.cpu.map(format_duration),
        LimitKind::Memory => limits.memory.map(format_bytes),
        LimitKind::FileSize => limits.file_size.map(format_bytes),
        LimitKind::Files => limits.files.map(|files| files.to_string()),
        LimitKind::Processes => limits.processes.map(|processes| processes.to_string()),
    };
    format!("limits.{} is {}", limit.name(), value.unwrap_or_default())
}

/// What programs print when they hit a limit: strerror, shells, allocators, interpreters.
const LIMIT_PHRASES: [(LimitKind, &[&str]); 5] = [
    (
        LimitKind::Memory,
        &[
            "cannot allocate memory",
            "out of memory",
            "memoryerror",
            "bad_alloc",
            "memory allocation of",
        ],
    ),
    (LimitKind::Files, &["too many open files"]),
    (
        LimitKind::FileSize,
        &["file too large", "file size limit exceeded"],
    ),
    (LimitKind::Cpu, &["cpu time limit exceeded"]),
    (LimitKind::Processes, &["resource temporarily unavailable"]),
];

/// Guesses which of the tool's limits was exceeded, from its standard error or from how it ended.
pub(crate) fn suspect_limit(
    tool: Option<&Tool>,
    ending: CallEnding,
    stderr: &str,
) -> Option<LimitKind> {
    let limits = command_limits(tool?);
    let stderr = stderr.to_lowercase();
    let mentions = |limit| {
        let words = LIMIT_PHRASES.iter().find(|(of, _)| *of == limit);
        words.is_some_and(|(_, words)| words.iter().any(|words| stderr.contains(words)))
    };
    // A shell exits with 128 + N if its program was killed by signal N.
    let ended_by = |signal| {
        ending == CallEnding::Signal(signal) || ending == CallEnding::ExitCode(128 + signal)
    };
    let crashed = [libc::SIGSEGV, libc::SIGABRT, libc::SIGKILL, libc::SIGBUS]
        .map(ended_by)
        .contains(&true);
    [
        (
            limits.cpu.is_some(),
            LimitKind::Cpu,
            ended_by(libc::SIGXCPU),
        ),
        (
            limits.file_size.is_some(),
            LimitKind::FileSize,
            ended_by(libc::SIGXFSZ),
        ),
        (limits.files.is_some(), LimitKind::Files, false),
        (limits.processes.is_some(), LimitKind::Processes, false),
        (limits.memory.is_some(), LimitKind::Memory, crashed),
    ]
    .into_iter()
    .find(|(is_set, limit, suggested)| *is_set && (*suggested || mentions(*limit)))
    .map(|(_, limit, _)| limit)
}

/// Returns a hint that names the suspected limit.
pub(crate) fn suspicion_hint(limit: LimitKind, tool: Option<&Tool>) -> String {
    format!("{}, and {}", format_limit(limit, tool), limit_hint(limit))
}

/// Returns what happened and what to do.
pub(crate) fn limit_hint(limit: LimitKind) -> &'static str {
    match limit {
        LimitKind::Cpu => "it used up its CPU time. Ask for less at a time.",
        LimitKind::Memory => "it isn't allowed to use more memory. Ask for less at a time.",
        LimitKind::Files => "it isn't allowed to open more files at once. Ask for less at a time.",
        LimitKind::Processes => "it started too many processes at once. Ask for less at a time.",
        LimitKind::FileSize => "it isn't allowed to write larger files. Ask for less at a time.",
    }
}

fn command_limits(tool: &Tool) -> CommandLimits {
    match &tool.backing {
        Some(Backing::Command(command)) => command.limits,
        _ => CommandLimits::default(),
    }
}

pub(crate) fn explain_timeout(
    name: &str,
    limit: Duration,
    output: &str,
    stderr: &str,
) -> ErrorText {
    let hint = "ask for less at a time (a narrower search, a smaller range), or use another tool.";
    let error = format!(
        "{name} timed out after {} and was stopped.",
        format_duration(limit)
    );
    ErrorText::new(error, hint).with_details(partial_output_text(output, stderr))
}
