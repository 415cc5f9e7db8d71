//! Why a call may not run, with all that a model needs to correct it.

use crate::json::InputFault;
use crate::json_schema::SchemaFault;
use crate::text::{MAX_NAME, clipped, nearest};
use crate::types::{Detail, Reason, Rejection, Tools};

/// Names that a text lists.
const MAX_KNOWN: usize = 50;

/// No tool has this name: the nearest one, and those that there are.
pub(crate) fn unknown(name: &str, tools: &Tools) -> Rejection {
    let known: Vec<&str> = tools.tools.iter().map(|tool| tool.name.as_str()).collect();
    let shown = clipped(name, MAX_NAME);
    let mut lines = vec![match nearest(name, known.iter().copied()) {
        _ if name.is_empty() => "the call has no name".to_owned(),
        Some(near) => format!("no tool is called `{shown}`; did you mean `{near}`?"),
        None => format!("no tool is called `{shown}`"),
    }];
    let listed = known[..known.len().min(MAX_KNOWN)].join(", ");
    match known.len().saturating_sub(MAX_KNOWN) {
        _ if known.is_empty() => {}
        0 => lines.push(format!("known: {listed}")),
        more => lines.push(format!("known: {listed} and {more} more")),
    }
    let details = lines.into_iter().map(of_input).collect();
    Rejection {
        reason: Reason::UnknownTool,
        details,
    }
}

/// Another call of the turn has the same id.
pub(crate) fn duplicate() -> Rejection {
    let detail = of_input("another call of this turn has the same id");
    Rejection {
        reason: Reason::DuplicateId,
        details: vec![detail],
    }
}

/// The turn was cut off inside this call.
pub(crate) fn truncated() -> Rejection {
    let detail = of_input("the answer ended at its token limit inside this call");
    Rejection {
        reason: Reason::Truncated,
        details: vec![detail],
    }
}

/// The stream broke off inside this call.
pub(crate) fn broken_off() -> Rejection {
    let detail = of_input("the answer broke off inside this call");
    Rejection {
        reason: Reason::BrokenOff,
        details: vec![detail],
    }
}

/// A path leads out of the root.
pub(crate) fn outside(details: Vec<Detail>) -> Rejection {
    Rejection {
        reason: Reason::PathOutsideRoot,
        details,
    }
}

/// The input breaks the schema, or a value can't stand where the tool puts it.
pub(crate) fn invalid(details: Vec<Detail>) -> Rejection {
    Rejection {
        reason: Reason::InvalidInput,
        details,
    }
}

/// What stands in the input's place is none.
pub(crate) fn unreadable(fault: &InputFault) -> Rejection {
    let (reason, path) = match fault {
        InputFault::NoName => (Reason::UnknownTool, ""),
        InputFault::DuplicateKey { pointer, .. } => (Reason::InvalidInput, pointer.as_str()),
        InputFault::TooLarge(_) => (Reason::InvalidInput, ""),
        _ => (Reason::InvalidArguments, ""),
    };
    let detail = Detail {
        path: clipped(path, MAX_NAME),
        message: clipped(&fault.to_string(), 2 * MAX_NAME),
    };
    Rejection {
        reason,
        details: vec![detail],
    }
}

/// The tool was to say what it takes, and did not.
pub(crate) fn undescribed(why: &str) -> Rejection {
    let why = clipped(why, 4 * MAX_NAME);
    let detail = of_input(format!("the tool could not describe what it takes: {why}"));
    invalid(vec![detail])
}

/// The file was checked when it was read, so this takes a file of a `$ref` that changed since.
pub(crate) fn unusable(faults: &[SchemaFault]) -> Rejection {
    let line = |fault: &SchemaFault| {
        of_input(format!(
            "the tool's input_schema can't be used: {}",
            fault.message
        ))
    };
    invalid(faults.iter().map(line).collect())
}

/// About the input as a whole.
fn of_input(message: impl Into<String>) -> Detail {
    Detail {
        path: String::new(),
        message: message.into(),
    }
}
