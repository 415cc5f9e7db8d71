//! Connections between two requests: when a new client finds no room, the one that was silent for longest makes room.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::Notify;

/// The connections without a request, in the order in which they became silent.
#[derive(Default)]
pub(super) struct IdleConnections(Mutex<IdleQueue>);

#[derive(Default)]
struct IdleQueue {
    next_place: u64,
    ends: BTreeMap<u64, Arc<Notify>>,
}

/// Whether a connection has a request.
pub(super) struct ConnectionActivity {
    all: Arc<IdleConnections>,
    end: Arc<Notify>,
    /// The place in the queue, if there is no request.
    place: Mutex<Option<u64>>,
}

/// Keeps a connection out of the queue.
pub(super) struct OpenRequest(Arc<ConnectionActivity>);

/// A response's body, whose request is open until all of it was taken.
pub(super) struct TrackedBody<B> {
    pub(super) body: B,
    pub(super) _request: OpenRequest,
}

impl IdleConnections {
    /// Tells the connection that was silent for longest to end.
    pub(super) fn end_oldest(&self) {
        if let Some((_, end)) = self.lock().ends.pop_first() {
            end.notify_one();
        }
    }

    fn enter(&self, end: &Arc<Notify>) -> u64 {
        let mut queue = self.lock();
        let place = queue.next_place;
        queue.next_place += 1;
        queue.ends.insert(place, Arc::clone(end));
        place
    }

    fn leave(&self, place: u64) {
        self.lock().ends.remove(&place);
    }

    fn lock(&self) -> MutexGuard<'_, IdleQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionActivity {
    /// Begins with a connection that hasn't sent anything yet.
    pub(super) fn new(all: Arc<IdleConnections>) -> Arc<Self> {
        let end = Arc::new(Notify::new());
        let place = all.enter(&end);
        Arc::new(Self {
            all,
            end,
            place: Mutex::new(Some(place)),
        })
    }

    /// A request has come.
    pub(super) fn begin_request(self: &Arc<Self>) -> OpenRequest {
        if let Some(place) = self.place().take() {
            self.all.leave(place);
        }
        OpenRequest(Arc::clone(self))
    }

    /// Waits until the connection is to make room.
    pub(super) async fn wait_for_end(&self) {
        loop {
            self.end.notified().await;
            // A request may have come at the last moment.
            if self.place().is_some() {
                return;
            }
        }
    }

    fn place(&self) -> MutexGuard<'_, Option<u64>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let activity = &self.0;
        *activity.place() = Some(activity.all.enter(&activity.end));
    }
}

impl Drop for ConnectionActivity {
    fn drop(&mut self) {
        if let Some(place) = self.place().take() {
            self.all.leave(place);
        }
    }
}

impl<B: Body + Unpin> Body for TrackedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
