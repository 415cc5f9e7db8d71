//! Names a tool's `limits`, and explains what a model can do when one is exceeded.

use crate::answer::texts::error_text::ErrorText;
use crate::text::{format_bytes, format_duration};
use crate::types::{
    Backing, BudgetLimit, CallEnding, CommandLimits, Effect, HaltCause, LimitKind, Tool,
};

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

// Explains calls whose run was stopped before they finished: by a signal, a closed stdout, or a budget.

/// Explains a call that was interrupted while running.
pub(crate) fn explain_interrupted(
    halt: HaltCause,
    tool: Option<&Tool>,
    written: String,
) -> ErrorText {
    let hint = if tool.is_some_and(|tool| tool.effect == Effect::Write) {
        "it may have done part of its work. Check before calling it again."
    } else {
        halt_hint(halt)
    };
    ErrorText::new(
        format!("Interrupted while running: {}.", halt_cause_text(halt)),
        hint,
    )
    .with_details(written)
}

/// Explains a call that never started.
pub(crate) fn explain_not_executed(halt: HaltCause) -> ErrorText {
    ErrorText::new(
        format!("Not executed: {}.", halt_cause_text(halt)),
        halt_hint(halt),
    )
}

pub(crate) fn halt_cause_text(halt: HaltCause) -> String {
    match halt {
        HaltCause::Signal(_) | HaltCause::OutputLost => {
            "the run was stopped from outside".to_owned()
        }
        HaltCause::AgentStopped => "the agent that called it was stopped".to_owned(),
        HaltCause::ClientCanceled => "the client canceled it".to_owned(),
        HaltCause::ClientLeft => "the client has left".to_owned(),
        HaltCause::ApproverStopped => "whoever approves calls stopped the run".to_owned(),
        HaltCause::WorkersLost => "too many workers were lost over this turn".to_owned(),
        HaltCause::OverBudget(BudgetLimit::Calls(1)) => {
            "this run's budget of 1 call is used up".to_owned()
        }
        HaltCause::OverBudget(BudgetLimit::Calls(calls)) => {
            format!("this run's budget of {calls} calls is used up")
        }
        HaltCause::OverBudget(BudgetLimit::Time(time)) => {
            let time = format_duration(time);
            format!("this run's time budget of {time} is used up")
        }
        HaltCause::OverBudget(BudgetLimit::Output(bytes)) => {
            let bytes = format_bytes(bytes);
            format!("this run's output budget of {bytes} is used up")
        }
    }
}

fn halt_hint(halt: HaltCause) -> &'static str {
    match halt {
        HaltCause::Signal(_)
        | HaltCause::OutputLost
        | HaltCause::AgentStopped
        | HaltCause::ClientCanceled
        | HaltCause::ClientLeft
        | HaltCause::ApproverStopped => {
            "nothing is wrong with this call. Call it again if it is still needed."
        }
        HaltCause::WorkersLost => {
            "one of its calls may be the reason. Don't make the same calls again; tell the user."
        }
        HaltCause::OverBudget(_) => {
            "the user set this limit. Continue with what you have, or tell the user what is missing."
        }
    }
}
