//! Requests that failed or found no answer.

use crate::answer::texts::error_text::Account;
use crate::answer::texts::halted;
use crate::text::format_duration;
use crate::types::{Doubt, Effect, MessageKey, Tool, Transport, TransportPhase};

/// The hint where a tool that writes may have written.
const UNSURE: &str = "it may have done its work all the same: look before you call it again.";

/// The hint where an answer was lost and nothing can have changed.
const BROKEN: &str = "try again later, or ask for less at once.";

/// Under which key of `messages` a failing status is worded.
pub(crate) fn key(status: u16) -> MessageKey {
    match status {
        429 => MessageKey::RateLimited,
        502..=504 | 529 => MessageKey::Unavailable,
        _ => MessageKey::Failed,
    }
}

pub(crate) fn status(tool: Option<&Tool>, status: u16, output: &str) -> Account {
    let (meaning, hint) = match (meaning(status), status) {
        ((meaning, _), 408 | 500..=599) if writes(tool) && status != 501 => (meaning, UNSURE),
        (told, _) => told,
    };
    let error = format!("The service answered HTTP {status}{meaning}.");
    Account::new(error, hint).with_details(output.to_owned())
}

/// What a status says (RFC 9110, section 15), and what to do then.
fn meaning(status: u16) -> (&'static str, &'static str) {
    match status {
        300..=399 => (
            " (a redirect)",
            "the tool doesn't follow it. Tell the user.",
        ),
        400 | 422 => (
            " (the request is wrong)",
            "check the values of the input against the tool's description, and correct them.",
        ),
        401 | 403 => (
            " (not permitted)",
            "the tool's access doesn't cover this, and calling again won't change that. Tell the user.",
        ),
        404 | 410 => (
            " (not found)",
            "what the input names doesn't exist there. Check names and ids.",
        ),
        405 | 501 => (
            " (not offered)",
            "the service doesn't offer this. Use another tool, or tell the user.",
        ),
        408 | 504 => (
            " (it took too long)",
            "ask for less at once, or try again later.",
        ),
        409 => (
            " (a conflict)",
            "what the input names is in another state than expected. Look at it first.",
        ),
        413 => (" (the request is too large)", "send less at once."),
        429 => (
            " (too many requests)",
            "wait before you call it again, with fewer calls at once.",
        ),
        402..=499 => (
            "",
            "the service doesn't take this request. Read its answer and change the input.",
        ),
        503 | 529 => (
            " (overloaded or down)",
            "the input may be right. Try again later, or go on without it.",
        ),
        500..=599 => (
            " (the service failed)",
            "the input may be right. Try once more later, or use another tool.",
        ),
        _ => (
            "",
            "the answer is none that this tool takes. Try another input, or tell the user.",
        ),
    }
}

pub(crate) fn transport(tool: Option<&Tool>, transport: &Transport) -> Account {
    let Transport {
        phase,
        origin,
        detail,
    } = transport;
    match phase {
        TransportPhase::Build => Account::new(
            format!("The request could not be built: {detail}."),
            "nothing was sent. Check the values of the input, or tell the user.",
        ),
        TransportPhase::Connect => Account::new(
            format!("{origin} could not be reached: {detail}."),
            unreachable(detail),
        ),
        TransportPhase::Response => Account::new(
            format!("{origin} gave no complete answer: {detail}."),
            BROKEN,
        ),
        TransportPhase::Body => Account::new(
            format!("The answer of {origin} broke off: {detail}."),
            BROKEN,
        ),
        TransportPhase::TooLarge => Account::new(
            format!("The answer of {origin} is too large: {detail}."),
            if writes(tool) {
                "the service took the request, so its work is done; only the answer didn't fit."
            } else {
                "ask for less at once: a narrower search, a smaller page."
            },
        ),
    }
}

/// A request of a tool that writes was sent, and what became of it is not known.
pub(crate) fn in_doubt(name: &str, doubt: &Doubt) -> Account {
    let cause = match doubt {
        Doubt::Within { tool, id } => return crate::answer::texts::agent::in_doubt(name, tool, id),
        Doubt::Broken(lost) if lost.phase == TransportPhase::Body => {
            format!("the answer of {} broke off: {}", lost.origin, lost.detail)
        }
        Doubt::Broken(lost) => format!("{} gave no complete answer: {}", lost.origin, lost.detail),
        Doubt::TimedOut(limit) => {
            format!("no complete answer came within {}", format_duration(*limit))
        }
        Doubt::Orphaned => "it was started, and the log has no end of it".to_owned(),
        Doubt::Interrupted(by) => format!("{}, and no answer had come", halted::cause(*by)),
        Doubt::Cancelled(by) => {
            format!("the {by} call beside it failed, and no answer had come")
        }
    };
    Account::new(
        format!("In doubt: {name} may have done its work: {cause}."),
        "look whether it did before you call it again, or tell the user.",
    )
}

fn unreachable(detail: &str) -> &'static str {
    let detail = detail.to_lowercase();
    if detail.contains("refused") {
        "nobody listens at this address, and nothing was sent. The service may not be running: try again later, or tell the user."
    } else if detail.contains("not public") {
        "this tool may ask public addresses only, and nothing was sent. Use another URL, or tell the user."
    } else if detail.contains("certificate") || detail.contains("tls") {
        "no safe connection can be made, and nothing was sent. Tell the user."
    } else if detail.contains("resolve") || detail.contains("dns") || detail.contains("lookup") {
        "the host's name is unknown, and nothing was sent. Try again later, or tell the user."
    } else {
        "nothing was sent. Try again later, or use another tool."
    }
}

fn writes(tool: Option<&Tool>) -> bool {
    tool.is_some_and(|tool| tool.effect == Effect::Write)
}
