//! Agents that came to no answer.

use crate::answer::texts::error_text::Account;
use crate::text::clipped;
use crate::types::AgentFault;

/// Characters of what an API said.
const MAX_SAID: usize = 1_000;

/// Characters of an id.
const MAX_ID: usize = 128;

/// What is told of an agent's fault; `output` is the last text of its model.
pub(crate) fn failed(name: &str, fault: &AgentFault, output: &str) -> Account {
    let (error, hint) = match fault {
        AgentFault::Api { status, said, wait } => {
            let said = clipped(said, MAX_SAID);
            let status = status.map_or(String::new(), |status| format!(" HTTP {status}:"));
            let wait = wait.map_or(String::new(), |wait| {
                format!("; the API asks to wait {}s (Retry-After)", wait.as_secs())
            });
            (
                format!("{name} has no answer: its model's API said{status} {said}{wait}"),
                of_status(status_of(fault)),
            )
        }
        AgentFault::NoEndpoint { declared, value } => (
            format!(
                "{name} can't ask its model: {}",
                no_endpoint(declared, value)
            ),
            "another input won't change that. Tell the user.",
        ),
        AgentFault::Unreadable(why) => (
            format!(
                "{name} has no answer: what its model's API sent is none ({})",
                clipped(why, MAX_SAID)
            ),
            "the task may be right. Try once more later, or go on without.",
        ),
        AgentFault::BrokeOff(why) => (
            format!(
                "{name} has no answer: its model's answer broke off when calls of it had started ({})",
                clipped(why, MAX_SAID)
            ),
            "the task may be right. Try once more later, or go on without.",
        ),
        AgentFault::Refused => (
            format!("{name} has no answer: its model declined"),
            "ask for something else, or go on without.",
        ),
        AgentFault::MaxTokens => (
            format!("{name} has no answer: its model was cut off at its limit of tokens"),
            "ask for less at once, in several smaller tasks.",
        ),
        AgentFault::ContextFull => (
            format!("{name} has no answer: its conversation grew longer than its model can read"),
            "ask for less at once, in several smaller tasks.",
        ),
        AgentFault::OverBudget {
            agent,
            budget,
            unknown,
        } => (
            match unknown {
                None => format!("{name} was ended: the budget of {agent}, {budget}, is used up"),
                Some(why) => format!(
                    "{name} was ended: nobody knows what is left of the budget of {agent}, {budget}, since {why}"
                ),
            },
            "this limit is the user's. Go on with what there is, or tell the user what is missing.",
        ),
        AgentFault::LogRefused(why) => (
            format!(
                "{name} was ended: what it does can't be recorded any more ({})",
                clipped(why, MAX_SAID)
            ),
            "another input won't change that. Tell the user.",
        ),
    };
    let details = match output {
        "" => String::new(),
        text => format!("Its last words:\n{text}"),
    };
    Account::new(format!("{}.", error.trim_end_matches('.')), hint).with_details(details)
}

/// What is told where a call that the agent asked for is in doubt. Whoever resolves it needs its id.
pub(crate) fn in_doubt(name: &str, tool: &str, id: &str) -> Account {
    let id = clipped(id, MAX_ID);
    Account::new(
        format!(
            "In doubt: {name} stopped at a call of {tool} ({id}), and nobody knows whether that did its work. `toolq log resolve` settles it; resumed, {name} goes on from there."
        ),
        "look whether it did before you call either again, or tell the user.",
    )
}

/// What is wrong with an endpoint, without the user that may stand in it, and what to write.
fn no_endpoint(declared: &str, value: &str) -> String {
    let shown = value.rsplit('@').next().unwrap_or_default();
    let shown = clipped(shown.split(['?', '#']).next().unwrap_or_default(), MAX_SAID);
    let from = if declared == value {
        String::new()
    } else {
        format!(" ({declared})")
    };
    let cure = if shown.is_empty() || shown.contains("://") {
        "https://HOST".to_owned()
    } else {
        format!("http://{shown}")
    };
    format!("its `endpoint`{from} is `{shown}`, which is no URL of http or https; write `{cure}`")
}

fn status_of(fault: &AgentFault) -> Option<u16> {
    match fault {
        AgentFault::Api { status, .. } => *status,
        _ => None,
    }
}

fn of_status(status: Option<u16>) -> &'static str {
    match status {
        Some(401 | 403) => {
            "its access doesn't cover this, and calling again won't change that. Tell the user."
        }
        Some(413) => "send less at once.",
        Some(400..=499) if status != Some(429) => {
            "another task won't change that, unless this one is too long. Tell the user."
        }
        _ => "the task may be right. Try once more later, or go on without.",
    }
}
