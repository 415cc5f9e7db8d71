//! Explains calls whose run was stopped before they finished: by a signal, a closed stdout, or a budget.

use crate::answer::texts::error_text::ErrorText;
use crate::text::{format_bytes, format_duration};
use crate::types::{BudgetLimit, Effect, HaltCause, Tool};

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
