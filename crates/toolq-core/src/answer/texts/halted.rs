//! Calls of a run that was ended before they were: by a signal, by a reader that went away, or by a budget.

use crate::answer::texts::error_text::Account;
use crate::text::{format_bytes, format_duration};
use crate::types::{Budget, Effect, Halt, Tool};

/// It ran, and was ended.
pub(crate) fn interrupted(by: Halt, tool: Option<&Tool>, written: String) -> Account {
    let hint = if tool.is_some_and(|tool| tool.effect == Effect::Write) {
        "it may have done a part of its work. Look before you call it again."
    } else {
        again(by)
    };
    Account::new(format!("Interrupted while it ran: {}.", cause(by)), hint).with_details(written)
}

/// It never started.
pub(crate) fn not_executed(by: Halt) -> Account {
    Account::new(format!("Not executed: {}.", cause(by)), again(by))
}

pub(crate) fn cause(by: Halt) -> String {
    match by {
        Halt::Signal(_) | Halt::OutputLost => "the run was ended from outside".to_owned(),
        Halt::AgentOver => "the agent that called it was ended".to_owned(),
        Halt::OverBudget(Budget::Calls(1)) => {
            "the budget of this run, 1 call, is used up".to_owned()
        }
        Halt::OverBudget(Budget::Calls(calls)) => {
            format!("the budget of this run, {calls} calls, is used up")
        }
        Halt::OverBudget(Budget::Time(time)) => {
            let time = format_duration(time);
            format!("the time budget of this run, {time}, is used up")
        }
        Halt::OverBudget(Budget::Output(bytes)) => {
            let bytes = format_bytes(bytes);
            format!("the output budget of this run, {bytes}, is used up")
        }
    }
}

fn again(by: Halt) -> &'static str {
    match by {
        Halt::Signal(_) | Halt::OutputLost | Halt::AgentOver => {
            "nothing is wrong with this call. Call it again if it is still needed."
        }
        Halt::OverBudget(_) => {
            "this limit is the user's. Go on with what there is, or tell the user what is missing."
        }
    }
}
