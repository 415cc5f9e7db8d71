//! Why a request found no whole answer: how far it came, and the cause in words.

use std::error::Error;
use std::time::Duration;

use toolq_core::types::{Outcome, Transport, TransportPhase};

/// Why no whole response came.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Nothing was sent, for this reason.
    Unsent(Outcome),
    /// The way there or back broke.
    Broken(Transport),
    /// Its time was over; the limit of tools.yaml.
    Late(Duration),
    /// A body came in this encoding, which was not asked for.
    Encoded(String),
}

impl From<Outcome> for Fault {
    fn from(outcome: Outcome) -> Self {
        Self::Unsent(outcome)
    }
}

/// Before the head of a response was there.
pub(crate) fn of_request(origin: &str, error: &reqwest::Error) -> Fault {
    let phase = if error.is_builder() {
        TransportPhase::Build
    } else if error.is_connect() {
        TransportPhase::Connect
    } else {
        TransportPhase::Response
    };
    broken(phase, origin, cause(error))
}

pub(crate) fn broken(phase: TransportPhase, origin: &str, detail: String) -> Fault {
    Fault::Broken(Transport {
        phase,
        origin: origin.to_owned(),
        detail,
    })
}

/// A request for `origin` that can't be made.
pub(crate) fn unbuilt(origin: String, detail: String) -> Outcome {
    Outcome::Transport(Transport {
        phase: TransportPhase::Build,
        origin,
        detail,
    })
}

/// The innermost cause. Those around it repeat the URL, in which secrets may stand.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    match cause.downcast_ref::<reqwest::Error>() {
        Some(_) => "the request could not be made".to_owned(),
        None => cause.to_string(),
    }
}
