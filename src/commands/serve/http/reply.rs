//! The response to a POST, while its messages are still being written.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;

use crate::commands::serve::open_calls::OpenCalls;
use crate::commands::serve::served_client::{ReplyChannel, ServedClient};

/// While more messages than this wait for the client to read them, progress is left out.
const MAX_PENDING_MESSAGES: usize = 64;

/// The body of a response: known as a whole, or a stream of events.
pub(super) type HttpReplyBody = Either<Full<Bytes>, EventStream>;

/// Where the messages of one POST go. The response ends when nothing can be sent there any more.
struct PostReply {
    lines: mpsc::UnboundedSender<Vec<u8>>,
    pending: Arc<AtomicUsize>,
    is_stream: bool,
}

/// The messages of one POST, for its response.
pub(super) struct PostMessages {
    lines: mpsc::UnboundedReceiver<Vec<u8>>,
    pending: Arc<AtomicUsize>,
    /// Ends the calls of the POST if the response is dropped before they are answered.
    _lifeline: Option<ClientLifeline>,
}

/// A client that exists only as long as the response to its request.
pub(super) struct ClientLifeline {
    pub(super) client: Arc<ServedClient>,
    pub(super) calls: Arc<OpenCalls>,
}

/// Messages as server-sent events.
pub(super) struct EventStream(PostMessages);

/// Returns where to send the messages of a POST, and where to read them. A response that isn't a stream has answers alone. If
/// there is a `lifeline`, its client leaves when the messages are read no more.
pub(super) fn open_reply(
    is_stream: bool,
    lifeline: Option<ClientLifeline>,
) -> (Arc<dyn ReplyChannel>, PostMessages) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let pending = Arc::new(AtomicUsize::new(0));
    let messages = PostMessages {
        lines: receiver,
        pending: Arc::clone(&pending),
        _lifeline: lifeline,
    };
    let reply = PostReply {
        lines: sender,
        pending,
        is_stream,
    };
    (Arc::new(reply), messages)
}

/// Returns a body that is known as a whole.
pub(super) fn full_body(bytes: impl Into<Bytes>) -> HttpReplyBody {
    Either::Left(Full::new(bytes.into()))
}

pub(super) fn empty_body() -> HttpReplyBody {
    full_body(Bytes::new())
}

impl ReplyChannel for PostReply {
    fn send(&self, lines: Vec<u8>) -> bool {
        self.pending.fetch_add(1, SeqCst);
        self.lines.send(lines).is_ok()
    }

    fn takes_questions(&self) -> bool {
        self.is_stream
    }

    fn is_open(&self) -> bool {
        !self.lines.is_closed()
    }

    fn is_full(&self) -> bool {
        !self.is_stream || self.pending.load(SeqCst) > MAX_PENDING_MESSAGES
    }
}

impl PostMessages {
    /// Waits for all messages, and returns each in a line.
    pub(super) async fn collect(mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(lines) = self.lines.recv().await {
            self.pending.fetch_sub(1, SeqCst);
            all.extend(lines);
        }
        all
    }

    /// Returns a body that sends each message as soon as it is there.
    pub(super) fn into_events(self) -> HttpReplyBody {
        Either::Right(EventStream(self))
    }
}

impl Drop for ClientLifeline {
    fn drop(&mut self) {
        self.client.leave(&self.calls);
    }
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let messages = &mut self.0;
        let Some(lines) = ready!(messages.lines.poll_recv(context)) else {
            return Poll::Ready(None);
        };
        messages.pending.fetch_sub(1, SeqCst);
        let mut events = Vec::with_capacity(lines.len() + 32);
        for line in lines.split(|byte| *byte == b'\n') {
            if !line.is_empty() {
                events.extend_from_slice(b"event: message\ndata: ");
                events.extend_from_slice(line);
                events.extend_from_slice(b"\n\n");
            }
        }
        Poll::Ready(Some(Ok(Frame::data(events.into()))))
    }
}
