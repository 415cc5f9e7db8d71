//! Calls that were not run, or not to their end, for a cause that is not the tool's own.

use crate::answer::texts::error_text::Account;
use crate::answer::texts::halted;
use crate::types::{Detail, Effect, MessageKey, NotExecuted, Outcome, Reason, Rejection, Tool};

/// Under which key of `messages` a rejection is worded.
pub(crate) fn key(reason: Reason) -> MessageKey {
    match reason {
        Reason::UnknownTool => MessageKey::UnknownTool,
        Reason::InvalidInput | Reason::InvalidArguments | Reason::PathOutsideRoot => {
            MessageKey::InvalidInput
        }
        Reason::DuplicateId
        | Reason::Truncated
        | Reason::BrokenOff
        | Reason::TooDeep
        | Reason::NotConcurrencySafe => MessageKey::NotExecuted,
    }
}

pub(crate) fn rejected(name: &str, rejection: &Rejection) -> Account {
    let details = &rejection.details;
    let first = details.first().map_or("", |detail| detail.message.as_str());
    match rejection.reason {
        Reason::UnknownTool => Account::new(
            format!("Unknown tool: {first}"),
            "call one of the known tools by its exact name, or go on without.",
        )
        .with_details(messages(details.get(1..).unwrap_or_default())),
        Reason::InvalidInput => invalid(name, details, "correct this and call it again."),
        Reason::InvalidArguments => invalid(
            name,
            details,
            "send the input as one JSON object, `{}` for no arguments.",
        ),
        Reason::PathOutsideRoot => invalid(
            name,
            details,
            "use a relative path below the working directory.",
        ),
        Reason::DuplicateId => Account::new(
            format!("Not executed: {first}."),
            "call it again; each call needs an id of its own.",
        ),
        Reason::TooDeep => Account::new(
            format!("Not executed: {first}."),
            "do this yourself, with the other tools, or say what is missing.",
        ),
        Reason::NotConcurrencySafe => Account::new(
            format!("Not executed: {first}."),
            "use another tool or another input, or say in your answer what is to be done.",
        ),
        Reason::Truncated => Account::new(
            format!("Not executed: {first}, so its input may be incomplete."),
            "call it again with a shorter input, or in several smaller calls.",
        ),
        Reason::BrokenOff => Account::new(
            format!("Not executed: {first}."),
            "nothing is wrong with this call. Call it again if it is still needed.",
        ),
    }
}

fn invalid(name: &str, details: &[Detail], hint: &'static str) -> Account {
    let lines: Vec<String> = details
        .iter()
        .map(|detail| match detail.path.as_str() {
            "" => format!("- {}", detail.message),
            path => format!("- {path}: {}", detail.message),
        })
        .collect();
    Account::new(format!("Invalid input for {name}; it was not run:"), hint)
        .with_details(lines.join("\n"))
}

fn messages(details: &[Detail]) -> String {
    let lines: Vec<&str> = details
        .iter()
        .map(|detail| detail.message.as_str())
        .collect();
    lines.join("\n")
}

pub(crate) fn not_executed(cause: &NotExecuted) -> Account {
    let error = match cause {
        NotExecuted::Preceding { tool } => {
            format!("Not executed: the preceding {tool} call failed.")
        }
        NotExecuted::Sibling { tool } => format!("Not executed: the {tool} call beside it failed."),
        NotExecuted::BrokeOff => {
            return Account::new(
                "Not executed: the answer that asked for it broke off before its end.",
                "nothing is wrong with this call. Call it again if it is still needed.",
            );
        }
        NotExecuted::Halted(by) => return halted::not_executed(*by),
        NotExecuted::LastTurn => {
            return Account::new(
                "Not executed: this was the last turn of the agent that called it.",
                "nothing is wrong with this call. Ask for less in one task.",
            );
        }
        NotExecuted::Completed { tool } => {
            return Account::new(
                format!("Not executed: the {tool} call before it ended the work."),
                "call this before the answer is given, if it is still needed.",
            );
        }
    };
    Account::new(
        error,
        "see to that failure first, then call this again if it is still needed.",
    )
}

pub(crate) fn cancelled(by: &str, tool: Option<&Tool>, written: String) -> Account {
    let hint = if tool.is_some_and(|tool| tool.effect == Effect::Write) {
        "it may have done a part of its work: see to that failure first, and look before you call this again."
    } else {
        "see to that failure first, then call this again if it is still needed."
    };
    Account::new(
        format!("Cancelled while it ran: the {by} call beside it failed."),
        hint,
    )
    .with_details(written)
}

pub(crate) fn paused(name: &str, failures: u32) -> Account {
    Account::new(
        format!("Paused: {name} failed {failures} times in a row, so this call was not run."),
        "don't call it again for now. Use another tool, or tell the user what went wrong.",
    )
}

/// What only the user can mend.
pub(crate) fn unable(name: &str, outcome: &Outcome) -> Account {
    let error = match outcome {
        Outcome::MissingVariable(variable) => {
            format!("{name} can't run: the environment variable {variable} is not set or empty.")
        }
        Outcome::NoBacking => format!("{name} can't run: it has no backing."),
        Outcome::LogRefused(cause) => format!("Not executed: {cause}."),
        Outcome::Broken(cause) => format!("{name} failed by a fault of toolq itself: {cause}."),
        _ => format!("{name} failed."),
    };
    Account::new(
        error,
        "another input won't change that. Use another tool, or tell the user.",
    )
}
