//! Builds rejections: why a call may not run, with everything a model needs to correct it.

#[cfg(test)]
mod tests;

use crate::json::InvalidInput;
use crate::json_schema::SchemaError;
use crate::text::{MAX_NAME_CHARS, list_some, suggest_name, truncate};
use crate::types::{Call, ProblemDetail, Rejection, RejectionReason, ToolsConfig};

/// Maximum number of tool names that a message lists.
const MAX_LISTED_TOOLS: usize = 50;
/// In how many calls of a turn the closest name is looked for, which takes a comparison with each tool. After so many, nobody
/// reads the names of the others.
const MAX_SUGGESTIONS: usize = 100;

/// Rejects a call to a tool that doesn't exist. Suggests the closest name and lists the known ones.
pub(crate) fn unknown_tool(call: &Call, tools: &ToolsConfig) -> Rejection {
    let name = &*call.name;
    let known = tools.known_names();
    let shown = truncate(name, MAX_NAME_CHARS);
    let compared = known
        .iter()
        .copied()
        .filter(|_| call.position < MAX_SUGGESTIONS);
    let mut lines = vec![match suggest_name(name, compared) {
        _ if name.is_empty() => "the call has no name".to_owned(),
        Some(near) => format!("no tool named `{shown}`; did you mean `{near}`?"),
        None => format!("no tool named `{shown}`"),
    }];
    if !known.is_empty() {
        let listed = list_some(known.iter(), MAX_LISTED_TOOLS);
        lines.push(format!("known: {listed}"));
    }
    for server in tools
        .unlocked
        .iter()
        .filter(|server| server.may_serve(name))
    {
        if let Some(Err(why)) = server.listing() {
            let why = truncate(why, 4 * MAX_NAME_CHARS);
            let server = &server.server.name;
            lines.push(format!(
                "the server {server} couldn't be asked for its tools: {why}"
            ));
        }
    }
    let details = lines.into_iter().map(input_detail).collect();
    Rejection {
        reason: RejectionReason::UnknownTool,
        details,
    }
}

/// Rejects a call during which the response hit its token limit.
pub(crate) fn truncated() -> Rejection {
    let detail = input_detail("the response hit its token limit in the middle of this call");
    Rejection {
        reason: RejectionReason::Truncated,
        details: vec![detail],
    }
}

/// Rejects a call of which it isn't certain what was sent: the pieces of its message don't fit together. What there is of its input
/// may be a `fault`.
pub(crate) fn not_whole(fault: Option<&InvalidInput>) -> Rejection {
    let detail = match fault {
        Some(InvalidInput::NotJson(_)) => {
            "the response with this call didn't arrive whole, and what arrived of its input is not valid JSON"
        }
        _ => "the response with this call didn't arrive whole",
    };
    Rejection {
        reason: RejectionReason::StreamAborted,
        details: vec![input_detail(detail)],
    }
}

/// Rejects a call whose input was incomplete when the stream broke off.
pub(crate) fn broken_off() -> Rejection {
    let detail = input_detail("the response broke off in the middle of this call");
    Rejection {
        reason: RejectionReason::StreamAborted,
        details: vec![detail],
    }
}

/// Rejects a call of a response that was refused or has failed.
pub(crate) fn response_refused() -> Rejection {
    let detail = input_detail("the response with this call was refused, failed or canceled");
    Rejection {
        reason: RejectionReason::ResponseRefused,
        details: vec![detail],
    }
}

/// Rejects a call that may have a result already.
pub(crate) fn misplaced_result() -> Rejection {
    let detail = "the conversation has a result that fits no call and may be the one of this call";
    Rejection {
        reason: RejectionReason::MisplacedResult,
        details: vec![input_detail(detail)],
    }
}

/// Rejects a call with paths that lead outside the root.
pub(crate) fn path_outside_root(details: Vec<ProblemDetail>) -> Rejection {
    Rejection {
        reason: RejectionReason::PathOutsideRoot,
        details,
    }
}

/// Rejects a call of a tool with effects, whose paths lead into a `.git` or to toolq's own files.
pub(crate) fn own_file(details: Vec<ProblemDetail>) -> Rejection {
    Rejection {
        reason: RejectionReason::OwnFile,
        details,
    }
}

/// Rejects an input that violates the schema, or with a value that isn't allowed where the tool's templates put it.
pub(crate) fn invalid_input(details: Vec<ProblemDetail>) -> Rejection {
    Rejection {
        reason: RejectionReason::InvalidInput,
        details,
    }
}

/// Rejects a call whose input couldn't be read.
pub(crate) fn unreadable_input(fault: &InvalidInput) -> Rejection {
    let (reason, path) = match fault {
        InvalidInput::MissingName | InvalidInput::UnknownKind(_) => {
            (RejectionReason::UnknownTool, "")
        }
        InvalidInput::DuplicateKey { pointer, .. } => {
            (RejectionReason::InvalidInput, pointer.as_str())
        }
        InvalidInput::TooLarge(_) => (RejectionReason::InvalidInput, ""),
        _ => (RejectionReason::InvalidArguments, ""),
    };
    let detail = ProblemDetail::new(
        truncate(path, MAX_NAME_CHARS),
        truncate(&fault.to_string(), 2 * MAX_NAME_CHARS),
    );
    Rejection {
        reason,
        details: vec![detail],
    }
}

/// Rejects a call to a tool whose `describe` command failed.
pub(crate) fn undescribed_tool(why: &str) -> Rejection {
    let why = truncate(why, 4 * MAX_NAME_CHARS);
    let detail = input_detail(format!("it failed to describe its input: {why}"));
    unusable_tool(vec![detail])
}

/// Rejects a call to a tool whose server couldn't be asked for its definition.
pub(crate) fn unlisted_tool(why: &str) -> Rejection {
    unusable_tool(vec![input_detail(truncate(why, 4 * MAX_NAME_CHARS))])
}

/// Rejects a call to a tool whose schema doesn't compile. tools.yaml was checked when it was loaded, so this only
/// happens if a file that the schema refers to has changed since.
pub(crate) fn unusable_schema(faults: &[SchemaError]) -> Rejection {
    let line = |fault: &SchemaError| {
        input_detail(format!("its input_schema can't be used: {}", fault.message))
    };
    unusable_tool(faults.iter().map(line).collect())
}

fn unusable_tool(details: Vec<ProblemDetail>) -> Rejection {
    Rejection {
        reason: RejectionReason::UnusableTool,
        details,
    }
}

/// A problem with the input as a whole.
fn input_detail(message: impl Into<String>) -> ProblemDetail {
    ProblemDetail::new("", message)
}
