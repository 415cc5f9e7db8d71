//! Explains calls that didn't run, or not to their end, for a reason outside the tool.

use crate::answer::texts::ErrorText;
use crate::text::{format_bytes, format_duration};
use crate::types::{
    Backing, BudgetLimit, HaltCause, MessageKey, NotExecutedCause, Outcome, ProblemDetail,
    Rejection, RejectionReason, Tool, ToolDrift,
};

/// What to do if only the user can help.
const UNABLE_HINT: &str =
    "a different input won't change that. Use another tool, or tell the user.";

/// Returns the key of `messages` for a rejection.
pub(crate) fn message_key(reason: RejectionReason) -> MessageKey {
    match reason {
        RejectionReason::UnknownTool => MessageKey::UnknownTool,
        RejectionReason::InvalidInput
        | RejectionReason::InvalidArguments
        | RejectionReason::PathOutsideRoot
        | RejectionReason::OwnFile => MessageKey::InvalidInput,
        RejectionReason::UnusableTool => MessageKey::Unavailable,
        RejectionReason::Truncated
        | RejectionReason::StreamAborted
        | RejectionReason::ResponseRefused
        | RejectionReason::MisplacedResult
        | RejectionReason::TooDeep
        | RejectionReason::NotConcurrencySafe => MessageKey::NotExecuted,
    }
}

pub(crate) fn explain_rejection(name: &str, rejection: &Rejection) -> ErrorText {
    let details = &rejection.details;
    let first = details.first().map_or("", |detail| detail.message.as_str());
    match rejection.reason {
        RejectionReason::UnknownTool => ErrorText::new(
            format!("Unknown tool: {first}"),
            "call one of the known tools by its exact name, or continue without it.",
        )
        .with_details(join_messages(details.get(1..).unwrap_or_default())),
        RejectionReason::InvalidInput => {
            explain_invalid_input(name, details, "fix this and call it again.")
        }
        // Details that lead nowhere in the input aren't about it.
        RejectionReason::PathOutsideRoot if details.iter().all(|detail| detail.path.is_empty()) => {
            ErrorText::new(format!("{name} can't run: {first}."), UNABLE_HINT)
        }
        RejectionReason::UnusableTool => ErrorText::new(
            format!("{name} can't run: {}.", first.trim_end_matches('.')),
            UNABLE_HINT,
        )
        .with_details(join_messages(details.get(1..).unwrap_or_default())),
        RejectionReason::InvalidArguments => explain_invalid_input(
            name,
            details,
            "send the input as one JSON object; use `{}` for no arguments.",
        ),
        RejectionReason::PathOutsideRoot => explain_invalid_input(
            name,
            details,
            "use a relative path inside the working directory.",
        ),
        RejectionReason::OwnFile => explain_invalid_input(
            name,
            details,
            "no tool can change what decides what runs. Use another path, or tell the user what you want to change there.",
        ),
        RejectionReason::TooDeep => ErrorText::new(
            format!("Not executed: {first}."),
            "do this yourself with the other tools, or say what is missing.",
        ),
        RejectionReason::NotConcurrencySafe => ErrorText::new(
            format!("Not executed: {first}."),
            "use another tool or another input, or say in your answer what needs to be done.",
        ),
        RejectionReason::Truncated => ErrorText::new(
            format!("Not executed: {first}, so its input may be incomplete."),
            "call it again with a shorter input, or split it into several smaller calls.",
        ),
        RejectionReason::MisplacedResult => ErrorText::new(
            format!("Not executed: {first}."),
            "it may have been done already. Find that out first, then call it again if it is still needed.",
        ),
        RejectionReason::StreamAborted | RejectionReason::ResponseRefused => ErrorText::new(
            format!("Not executed: {first}."),
            "nothing is wrong with this call. Call it again if it is still needed.",
        ),
    }
}

fn explain_invalid_input(name: &str, details: &[ProblemDetail], hint: &'static str) -> ErrorText {
    let lines: Vec<String> = details
        .iter()
        .map(|detail| match detail.path.as_str() {
            "" => format!("- {}", detail.message),
            path => format!("- {path}: {}", detail.message),
        })
        .collect();
    ErrorText::new(format!("Invalid input for {name}; it was not run:"), hint)
        .with_details(lines.join("\n"))
}

fn join_messages(details: &[ProblemDetail]) -> String {
    let lines: Vec<&str> = details
        .iter()
        .map(|detail| detail.message.as_str())
        .collect();
    lines.join("\n")
}

pub(crate) fn explain_not_executed(cause: &NotExecutedCause) -> ErrorText {
    let error = match cause {
        NotExecutedCause::PrecedingFailed { tool } => {
            format!("Not executed: the preceding {tool} call failed.")
        }
        NotExecutedCause::PrecedingInDoubt { tool } => {
            return ErrorText::new(
                format!("Not executed: whether the preceding {tool} call happened is not known."),
                "find that out first, then call this again if it is still needed.",
            );
        }
        NotExecutedCause::PrecedingNeedsApproval { tool } => {
            return ErrorText::new(
                format!("Not executed: the preceding {tool} call waits for an approval."),
                "nothing is wrong with this call. That call has to be approved first.",
            );
        }
        NotExecutedCause::SiblingFailed { tool } => {
            format!("Not executed: the parallel {tool} call failed.")
        }
        NotExecutedCause::StreamAborted => {
            return ErrorText::new(
                "Not executed: the response that contains this call broke off.",
                "nothing is wrong with this call. Call it again if it is still needed.",
            );
        }
        NotExecutedCause::Halted(halt) => return explain_halted(*halt),
        NotExecutedCause::LastTurn => {
            return ErrorText::new(
                "Not executed: this was the last turn of the agent that called it.",
                "nothing is wrong with this call. Ask for less in one task.",
            );
        }
        NotExecutedCause::SessionCompleted { tool } => {
            return ErrorText::new(
                format!("Not executed: the preceding {tool} call ended the session."),
                "if this is still needed, call it before giving the final answer.",
            );
        }
    };
    ErrorText::new(
        error,
        "deal with that failure first, then call this again if it is still needed.",
    )
}

pub(crate) fn explain_canceled(failed_tool: &str, written: String) -> ErrorText {
    ErrorText::new(
        format!("Canceled while running: the parallel {failed_tool} call failed."),
        "deal with that failure first, then call this again if it is still needed.",
    )
    .with_details(written)
}

pub(crate) fn explain_paused(name: &str, failures: u32) -> ErrorText {
    let failed = match failures {
        1 => "failed".to_owned(),
        _ => format!("failed {failures} times in a row"),
    };
    ErrorText::new(
        format!("Paused: {name} {failed}, so this call was not run."),
        "don't call it again for now. Use another tool, or tell the user what went wrong.",
    )
}

pub(crate) fn explain_missing_approval(name: &str) -> ErrorText {
    ErrorText::new(
        format!("Not executed: {name} needs an approval, which nobody has given."),
        "don't call it again for now. Tell the user what you wanted to do and why.",
    )
}

pub(crate) fn explain_denial(name: &str, reason: Option<&str>) -> ErrorText {
    ErrorText::new(
        format!("Denied: {name} was not approved."),
        "don't try the same in another way. Continue without it, or ask the user.",
    )
    .with_details(reason.unwrap_or_default().to_owned())
}

/// Returns whether tools.lock doesn't have the tool's server.
fn is_unlocked(tool: Option<&Tool>) -> bool {
    let backing = tool.and_then(|tool| tool.backing.as_ref());
    matches!(backing, Some(Backing::Mcp(mcp)) if mcp.server.lock_digest.is_none())
}

/// Explains a failure that only the user can fix.
pub(crate) fn explain_unable(name: &str, tool: Option<&Tool>, outcome: &Outcome) -> ErrorText {
    let error = match outcome {
        Outcome::MissingVariable(variable) => {
            format!("{name} can't run: the environment variable {variable} is unset or empty.")
        }
        Outcome::ToolDrifted(drift) if is_unlocked(tool) => format!(
            "{name} can't run: {} since the beginning of this run.",
            describe_drift(drift)
        ),
        Outcome::ToolDrifted(drift) => format!(
            "{name} can't run: {} since it was locked. `toolq servers` shows the change, and `toolq servers lock --update` accepts it.",
            describe_drift(drift)
        ),
        Outcome::NoBacking => format!("{name} can't run: it has no backing."),
        Outcome::LogRefused(cause) => format!("Not executed: {cause}."),
        Outcome::InternalError(cause) => {
            format!("{name} failed because of an internal error in toolq: {cause}.")
        }
        _ => format!("{name} failed."),
    };
    ErrorText::new(error, UNABLE_HINT)
}

/// Says how a tool differs from what was locked, without the server's own words: no model should read them.
pub(crate) fn describe_drift(drift: &ToolDrift) -> String {
    match drift {
        ToolDrift::Gone => "its server has dropped it".to_owned(),
        ToolDrift::Changed(parts) => {
            let parts: Vec<&str> = parts.iter().map(|part| part.name()).collect();
            let what = match parts.split_last() {
                Some((last, [])) => (*last).to_owned(),
                Some((last, others)) => format!("{} and {last}", others.join(", ")),
                None => "definition".to_owned(),
            };
            format!("its server has changed its {what}")
        }
    }
}

// Explains calls whose run was stopped before they finished: by a signal, a closed stdout, or a budget.

/// Explains a call that was interrupted while running.
pub(crate) fn explain_interrupted(halt: HaltCause, written: String) -> ErrorText {
    ErrorText::new(
        format!("Interrupted while running: {}.", halt_cause_text(halt)),
        halt_hint(halt),
    )
    .with_details(written)
}

/// Explains a call that never started.
pub(crate) fn explain_halted(halt: HaltCause) -> ErrorText {
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

pub(crate) fn halt_hint(halt: HaltCause) -> &'static str {
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
