//! Explains requests that failed or got no response.

use std::borrow::Cow;

use crate::answer::texts::{ErrorText, rejected};
use crate::text::{format_duration, truncate};
use crate::types::{
    DoubtCause, Effect, MessageKey, Tool, TransportCause, TransportError, TransportPhase,
};

/// Maximum length of an id, in characters.
const MAX_ID_CHARS: usize = 128;

/// Hint for a lost response to a request that changes nothing.
const RETRY_LATER_HINT: &str = "try again later, or ask for less at a time.";

/// Returns the key of `messages` for a failing status.
pub(crate) fn message_key(status: u16) -> MessageKey {
    match status {
        429 => MessageKey::RateLimited,
        502..=504 | 529 => MessageKey::Unavailable,
        _ => MessageKey::Failed,
    }
}

pub(crate) fn explain_status(status: u16, output: &str) -> ErrorText {
    let (meaning, hint) = status_meaning(status);
    let error = format!("The service returned HTTP {status}{meaning}.");
    ErrorText::new(error, hint).with_details(output.to_owned())
}

/// Returns what a status means (RFC 9110, section 15), and what to do about it.
fn status_meaning(status: u16) -> (&'static str, &'static str) {
    match status {
        300..=399 => (
            " (a redirect)",
            "the tool doesn't follow it any further. Tell the user.",
        ),
        400 | 422 => (
            " (bad request)",
            "check the input's values against the tool's description, and correct them.",
        ),
        401 | 403 => (
            " (not permitted)",
            "the tool's credentials don't allow this, and calling again won't change that. Tell the user.",
        ),
        404 | 410 => (
            " (not found)",
            "what the input refers to doesn't exist there. Check names and ids.",
        ),
        405 | 501 => (
            " (not supported)",
            "the service doesn't support this. Use another tool, or tell the user.",
        ),
        408 | 504 => (
            " (timed out)",
            "ask for less at a time, or try again later.",
        ),
        409 => (
            " (conflict)",
            "what the input refers to isn't in the expected state. Check its state first.",
        ),
        413 => (" (request too large)", "send less at a time."),
        429 => (
            " (too many requests)",
            "wait before calling it again, and make fewer calls at once.",
        ),
        402..=499 => (
            "",
            "the service refused this request. Read its response and change the input.",
        ),
        503 | 529 => (
            " (overloaded or down)",
            "the input may be fine. Try again later, or continue without it.",
        ),
        500..=599 => (
            " (server error)",
            "the input may be fine. Try again later, or use another tool.",
        ),
        _ => (
            "",
            "the tool doesn't accept this response. Try another input, or tell the user.",
        ),
    }
}

pub(crate) fn explain_transport_error(
    tool: Option<&Tool>,
    transport: &TransportError,
) -> ErrorText {
    let TransportError {
        phase,
        origin,
        cause,
        detail,
    } = transport;
    match phase {
        TransportPhase::Build => ErrorText::new(
            format!("The request could not be built: {detail}."),
            "nothing was sent. Check the input's values, or tell the user.",
        ),
        TransportPhase::Connect => ErrorText::new(
            format!("{} could not be reached: {detail}.", begin_sentence(origin)),
            unreachable_hint(*cause),
        ),
        TransportPhase::Response => ErrorText::new(
            format!(
                "{} sent no complete response: {detail}.",
                begin_sentence(origin)
            ),
            RETRY_LATER_HINT,
        ),
        TransportPhase::Body => ErrorText::new(
            format!("The response from {origin} broke off: {detail}."),
            RETRY_LATER_HINT,
        ),
        TransportPhase::TooLarge => ErrorText::new(
            format!("The response from {origin} is too large: {detail}."),
            if is_write(tool) {
                "the service accepted the request, so its work is done; only the response was too large."
            } else {
                "ask for less at a time: a narrower search, a smaller page."
            },
        ),
    }
}

/// Returns what a request went to as the beginning of a sentence. URLs and names stay as they are.
fn begin_sentence(origin: &str) -> Cow<'_, str> {
    match origin.strip_prefix("the ") {
        Some(rest) => format!("The {rest}").into(),
        None => origin.into(),
    }
}

/// Explains a call that may or may not have done its work.
pub(crate) fn explain_in_doubt(name: &str, doubt: &DoubtCause) -> ErrorText {
    let cause = match doubt {
        DoubtCause::NestedCall { tool, id } => {
            return explain_inner_doubt(name, tool, id);
        }
        DoubtCause::ConnectionLost(error) if error.phase == TransportPhase::Body => {
            format!(
                "the response from {} broke off: {}",
                error.origin, error.detail
            )
        }
        DoubtCause::ConnectionLost(error) => {
            format!(
                "{} sent no complete response: {}",
                error.origin, error.detail
            )
        }
        DoubtCause::TimedOut(limit) => {
            format!(
                "no complete response arrived within {}",
                format_duration(*limit)
            )
        }
        DoubtCause::EndNotLogged(start) => {
            let earlier = start.as_ref().and_then(|start| start.earlier.as_ref());
            match earlier.map(|earlier| &earlier.result) {
                Some(Some(_)) => "an earlier call failed in a way that leaves that open",
                Some(None) => {
                    "an earlier call with its id or values was started, but the log doesn't say how it ended"
                }
                None => "it was started, but the log doesn't say how it ended",
            }
            .to_owned()
        }
        DoubtCause::ReaperKilled => {
            "its program was killed together with the process that watched it".to_owned()
        }
        DoubtCause::Interrupted(halt) => {
            format!(
                "{}, and no complete result had arrived",
                rejected::halt_cause_text(*halt)
            )
        }
        DoubtCause::Canceled(failed_tool) => {
            format!("the parallel {failed_tool} call failed, and no complete result had arrived")
        }
    };
    ErrorText::new(
        format!("In doubt: {name} may have done its work: {cause}."),
        "check whether it did before calling it again, or tell the user.",
    )
}

/// Returns what to do about a failed connection.
fn unreachable_hint(cause: TransportCause) -> &'static str {
    match cause {
        TransportCause::ConnectionRefused => {
            "nothing is listening at this address, and nothing was sent. The service may not be running: try again later, or tell the user."
        }
        TransportCause::NonPublicAddress => {
            "this tool may only contact public addresses, and nothing was sent. Use another URL, or tell the user."
        }
        TransportCause::Tls => {
            "a secure connection couldn't be established, and nothing was sent. Tell the user."
        }
        TransportCause::UnknownHost => {
            "the host name is unknown, and nothing was sent. Try again later, or tell the user."
        }
        TransportCause::Other => "nothing was sent. Try again later, or use another tool.",
    }
}

pub(crate) fn is_write(tool: Option<&Tool>) -> bool {
    tool.is_some_and(|tool| tool.effect == Effect::Write)
}

/// Explains that a call requested by the agent is in doubt. The text includes the call's id, which is
/// needed to resolve it.
fn explain_inner_doubt(name: &str, tool: &str, id: &str) -> ErrorText {
    let id = truncate(id, MAX_ID_CHARS);
    ErrorText::new(
        format!(
            "In doubt: {name} stopped at a call of {tool} ({id}), which may or may not have done its work. Settle that with `toolq log resolve`; when resumed, {name} continues from there."
        ),
        "check whether it did before calling either again, or tell the user.",
    )
}
