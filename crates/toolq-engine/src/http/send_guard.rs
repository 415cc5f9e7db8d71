//! Whether a request has begun to leave. Who calls it off learns whether that came in time: then nothing was sent, and
//! nothing will be.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use reqwest::Request;

use toolq_core::types::{Effect, HttpBacking};

/// It waits for a connection.
const WAITING: u8 = 0;
/// A part of it may have been sent.
const BEGUN: u8 = 1;
/// It is never sent.
const CALLED_OFF: u8 = 2;

/// How far a request has come. Clones are of the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sending(Arc<AtomicU8>);

impl Sending {
    /// From here on it may have been sent, unless it was called off. Says whether it goes on.
    pub(crate) fn begin(&self) -> bool {
        self.swap(WAITING, BEGUN) != CALLED_OFF
    }

    /// Keeps it from being sent; says whether that was still possible.
    pub(crate) fn call_off(&self) -> bool {
        self.swap(WAITING, CALLED_OFF) != BEGUN
    }

    /// Watches a request that changes something. Its body is asked for when there is a connection for it: that begins the
    /// sending. What has no body, or may have to be sent twice, counts as sent from the start.
    pub(crate) fn watch(
        &self,
        mut request: Request,
        effect: Effect,
        backing: &HttpBacking,
    ) -> Request {
        let body = request.body_mut();
        let bytes = body.as_ref().and_then(reqwest::Body::as_bytes);
        match bytes.map(Bytes::copy_from_slice) {
            Some(bytes) if effect == Effect::Write && backing.redirects == 0 => {
                *body = Some(reqwest::Body::wrap(Watched {
                    sending: self.clone(),
                    rest: Some(bytes),
                }));
            }
            _ => {
                self.begin();
            }
        }
        request
    }

    /// What it was before.
    fn swap(&self, from: u8, to: u8) -> u8 {
        let swapped = self
            .0
            .compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst);
        swapped.unwrap_or_else(|other| other)
    }
}

/// The connection that was made for the request is given up with it.
#[derive(Debug, thiserror::Error)]
#[error("the request was called off")]
struct CalledOff;

struct Watched {
    sending: Sending,
    rest: Option<Bytes>,
}

impl Body for Watched {
    type Data = Bytes;
    type Error = CalledOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CalledOff>>> {
        if !self.sending.begin() {
            return Poll::Ready(Some(Err(CalledOff)));
        }
        Poll::Ready(self.rest.take().map(|rest| Ok(Frame::data(rest))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.as_ref().map_or(0, |rest| rest.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FAULTS 100: of the two, one comes first, and both know which.
    #[test]
    fn what_was_called_off_is_not_sent() {
        let (sent, kept) = (Sending::default(), Sending::default());
        assert!(sent.begin() && sent.begin() && !sent.call_off());
        assert!(kept.call_off() && kept.call_off() && !kept.begin());
        for _ in 0..1_000 {
            let sending = Sending::default();
            let other = sending.clone();
            let sender = std::thread::spawn(move || other.begin());
            assert_ne!(sending.call_off(), sender.join().unwrap());
        }
    }
}
