//! Tracks whether a request may have been sent. Canceling it returns whether that was in time. If it was, nothing was
//! sent, and nothing will be.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use reqwest::Request;

use toolq_core::types::{Effect, HttpBacking};

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
