//! Why a request got no complete response: how far it got, and the cause; and whether it may have been sent at all.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use reqwest::Request;

use toolq_core::types::{
    Effect, HttpBacking, Outcome, TransportCause, TransportError, TransportPhase,
};

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

/// A name that must not be connected to. One non-public address is enough: a name server that returns both kinds is
/// most likely after that one.
#[derive(Debug, thiserror::Error)]
#[error("{0} resolves to an address that is not public")]
pub(crate) struct NonPublicAddress(pub(super) String);

/// A name that can't be resolved.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct LookupError(pub(super) io::Error);

// Tracks whether a request may have been sent. Canceling it returns whether that was in time. If it was, nothing was
// sent, and nothing will be.

/// The request is waiting for a connection.
const WAITING: u8 = 0;
/// A part of the request may have been sent.
const SENT: u8 = 1;
/// The request will never be sent.
const CANCELED: u8 = 2;

/// How far a request has gotten. Clones track the same request.
#[derive(Debug, Clone, Default)]
pub(crate) struct SendGuard(Arc<AtomicU8>);

impl SendGuard {
    /// Marks the request as possibly sent, unless it was canceled. Returns whether it may be sent.
    pub(crate) fn mark_sent(&self) -> bool {
        self.transition(WAITING, SENT) != CANCELED
    }

    /// Returns whether a part of the request may have been sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.0.load(Ordering::SeqCst) == SENT
    }

    /// Returns a body that marks its request as sent when the HTTP client, once it has a connection, asks for it.
    pub(crate) fn wrap_body(&self, bytes: Bytes) -> reqwest::Body {
        reqwest::Body::wrap(GuardedBody {
            guard: self.clone(),
            remaining: Some(bytes),
        })
    }

    /// Cancels the request. Returns whether that was in time, so that nothing was sent.
    pub(crate) fn try_cancel(&self) -> bool {
        self.transition(WAITING, CANCELED) != SENT
    }

    /// Tracks a request of a `write` tool. The HTTP client polls the body once it has a connection, which marks the
    /// request as sent. All other requests, those without a body, and those that may be redirected count as sent from
    /// the start.
    pub(crate) fn guard_request(
        &self,
        mut request: Request,
        effect: Effect,
        backing: &HttpBacking,
    ) -> Request {
        let body = request.body_mut();
        let bytes = body.as_ref().and_then(reqwest::Body::as_bytes);
        match bytes.map(Bytes::copy_from_slice) {
            Some(bytes) if effect == Effect::Write && backing.max_redirects == 0 => {
                *body = Some(self.wrap_body(bytes));
            }
            _ => {
                self.mark_sent();
            }
        }
        request
    }

    /// Replaces the state `from` with `to`. Returns the previous state.
    fn transition(&self, from: u8, to: u8) -> u8 {
        let swapped = self
            .0
            .compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst);
        swapped.unwrap_or_else(|other| other)
    }
}

/// Returned by the body of a canceled request, so that the client drops the request and its connection.
#[derive(Debug, thiserror::Error)]
#[error("the request was canceled")]
struct RequestCanceled;

struct GuardedBody {
    guard: SendGuard,
    remaining: Option<Bytes>,
}

impl Body for GuardedBody {
    type Data = Bytes;
    type Error = RequestCanceled;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RequestCanceled>>> {
        if !self.guard.mark_sent() {
            return Poll::Ready(Some(Err(RequestCanceled)));
        }
        Poll::Ready(self.remaining.take().map(|rest| Ok(Frame::data(rest))))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining.as_ref().map_or(0, |rest| rest.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Either sending or canceling comes first, and both sides agree on which.
    #[test]
    fn a_canceled_request_is_not_sent() {
        let (sent, canceled) = (SendGuard::default(), SendGuard::default());
        assert!(sent.mark_sent() && sent.mark_sent() && !sent.try_cancel());
        assert!(canceled.try_cancel() && canceled.try_cancel() && !canceled.mark_sent());
        for _ in 0..1_000 {
            let guard = SendGuard::default();
            let other = guard.clone();
            let sender = std::thread::spawn(move || other.mark_sent());
            assert_ne!(guard.try_cancel(), sender.join().unwrap());
        }
    }
}
