//! What a tool's `limits` are called, and what a model can do where one strikes.

use crate::text::{format_bytes, format_duration};
use crate::types::{Backing, Ending, Limit, Limits, Tool};

/// The limit as tools.yaml has it: `limits.cpu is 10s`.
pub(crate) fn told(limit: Limit, tool: Option<&Tool>) -> String {
    let limits = tool.map(limits).unwrap_or_default();
    let value = match limit {
        Limit::Cpu => limits.cpu.map(format_duration),
        Limit::Memory => limits.memory.map(format_bytes),
        Limit::FileSize => limits.file_size.map(format_bytes),
        Limit::Files => limits.files.map(|files| files.to_string()),
        Limit::Processes => limits.processes.map(|processes| processes.to_string()),
    };
    format!("limits.{} is {}", limit.name(), value.unwrap_or_default())
}

/// What a program or a shell says when it ran into a limit: strerror, allocators, interpreters.
const WORDS: [(Limit, &[&str]); 5] = [
    (
        Limit::Memory,
        &[
            "cannot allocate memory",
            "out of memory",
            "memoryerror",
            "bad_alloc",
            "memory allocation of",
        ],
    ),
    (Limit::Files, &["too many open files"]),
    (
        Limit::FileSize,
        &["file too large", "file size limit exceeded"],
    ),
    (Limit::Cpu, &["cpu time limit exceeded"]),
    (Limit::Processes, &["resource temporarily unavailable"]),
];

/// The limit of the tool that the end of its standard error speaks of, or that its way to end suggests.
pub(crate) fn suspected(tool: Option<&Tool>, ending: Ending, stderr: &str) -> Option<Limit> {
    let limits = limits(tool?);
    let stderr = stderr.to_lowercase();
    let says = |limit| {
        let words = WORDS.iter().find(|(of, _)| *of == limit);
        words.is_some_and(|(_, words)| words.iter().any(|words| stderr.contains(words)))
    };
    // A shell gives 128 and the signal for a program of its own that a signal ended.
    let by = |signal| ending == Ending::Signal(signal) || ending == Ending::Exit(128 + signal);
    let crashed = [libc::SIGSEGV, libc::SIGABRT, libc::SIGKILL, libc::SIGBUS]
        .map(by)
        .contains(&true);
    [
        (limits.cpu.is_some(), Limit::Cpu, by(libc::SIGXCPU)),
        (
            limits.file_size.is_some(),
            Limit::FileSize,
            by(libc::SIGXFSZ),
        ),
        (limits.files.is_some(), Limit::Files, false),
        (limits.processes.is_some(), Limit::Processes, false),
        (limits.memory.is_some(), Limit::Memory, crashed),
    ]
    .into_iter()
    .find(|(is_set, limit, suggested)| *is_set && (*suggested || says(*limit)))
    .map(|(_, limit, _)| limit)
}

/// A hint that says which limit it may have been.
pub(crate) fn suspicion(limit: Limit, tool: Option<&Tool>) -> String {
    format!("{}, and {}", told(limit, tool), hint(limit))
}

/// What to do.
pub(crate) fn hint(limit: Limit) -> &'static str {
    match limit {
        Limit::Cpu => "it used up its processor time. Ask for less at once.",
        Limit::Memory => "it may not use more memory. Ask for less at once.",
        Limit::Files => "it may not open more files at a time. Ask for less at once.",
        Limit::Processes => "it started too many processes at a time. Ask for less at once.",
        Limit::FileSize => "it may not write larger files. Ask for less at once.",
    }
}

fn limits(tool: &Tool) -> Limits {
    match &tool.backing {
        Some(Backing::Command(command)) => command.limits,
        _ => Limits::default(),
    }
}
