//! Why a request got no complete response: how far it got, and the cause.

use std::error::Error;
use std::io;
use std::time::Duration;

use crate::http::clients::{LookupError, NonPublicAddress};
use toolq_core::types::{Outcome, TransportCause, TransportError, TransportPhase};

/// Why there is no complete response.
#[derive(Debug, derive_more::From)]
pub(crate) enum HttpError {
    /// Nothing was sent; the call has this outcome.
    #[from]
    Unsent(Outcome),
    /// Building or sending the request, or reading the response, failed.
    Transport(TransportError),
    /// It timed out. Holds the timeout, as configured in tools.yaml.
    TimedOut(Duration),
    /// The body is encoded in a way that can't be decoded, which this says.
    EncodedBody(String),
}

/// Converts an error that occurred before the head of the response was received. If the request was `moved` by a redirect, it was
/// sent before.
pub(crate) fn from_reqwest_error(origin: &str, error: &reqwest::Error, moved: bool) -> HttpError {
    let phase = if moved {
        TransportPhase::Response
    } else if error.is_builder() {
        TransportPhase::Build
    } else if error.is_connect() {
        TransportPhase::Connect
    } else {
        TransportPhase::Response
    };
    HttpError::Transport(TransportError {
        phase,
        origin: origin.to_owned(),
        cause: classify_cause(error),
        detail: root_cause(error),
    })
}

pub(crate) fn transport_error(phase: TransportPhase, origin: &str, detail: String) -> HttpError {
    HttpError::Transport(TransportError {
        phase,
        origin: origin.to_owned(),
        cause: TransportCause::Other,
        detail,
    })
}

/// Returns the outcome of a request to `origin` that can't be built.
pub(crate) fn build_failure(origin: String, detail: String) -> Outcome {
    Outcome::TransportFailed(TransportError {
        phase: TransportPhase::Build,
        origin,
        cause: TransportCause::Other,
        detail,
    })
}

/// Finds the cause among the sources of an error, by their types.
pub(crate) fn classify_cause(error: &reqwest::Error) -> TransportCause {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(source) = next {
        if let Some(cause) = cause_of(source) {
            return cause;
        }
        next = source.source();
    }
    TransportCause::Other
}

fn cause_of(error: &(dyn Error + 'static)) -> Option<TransportCause> {
    if error.is::<NonPublicAddress>() {
        return Some(TransportCause::NonPublicAddress);
    }
    if error.is::<LookupError>() {
        return Some(TransportCause::UnknownHost);
    }
    if error.is::<rustls::Error>() {
        return Some(TransportCause::Tls);
    }
    let io_error = error.downcast_ref::<io::Error>()?;
    if io_error.kind() == io::ErrorKind::ConnectionRefused {
        return Some(TransportCause::ConnectionRefused);
    }
    // The error inside of an I/O error isn't one of its sources.
    cause_of(io_error.get_ref()?)
}

/// Returns the innermost cause. The outer ones repeat the URL, which may contain secrets.
pub(crate) fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match cause.downcast_ref::<reqwest::Error>() {
        Some(_) => "the request could not be made".to_owned(),
        None => certificate_problem(&cause.to_string()).unwrap_or_else(|| cause.to_string()),
    }
}

/// Says in words what is wrong with a certificate for which rustls has only a value.
fn certificate_problem(detail: &str) -> Option<String> {
    let name = detail.strip_prefix("invalid peer certificate: Other(OtherError(")?;
    Some(match name.trim_end_matches(')') {
        "CaUsedAsEndEntity" => {
            "its certificate is one of an authority (CA:TRUE), not of a server".to_owned()
        }
        other => format!("invalid peer certificate: {other}"),
    })
}
