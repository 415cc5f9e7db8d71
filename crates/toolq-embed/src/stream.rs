//! Answers a stream of server-sent events. Calls start while the model is still writing.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use tokio::io::AsyncRead;
use tokio::sync::Mutex;

use crate::error::Error;
use crate::event::{Event, EventCallback};
use crate::reply::Reply;
use crate::session::EmbeddedSession;
use crate::stream_reader::StreamReader;

/// A stream that is about to be answered. Await it.
///
/// Dropping the future kills what it runs, and loses the results of calls that had finished. They are in the session
/// log, but answering the same message again runs its calls again. Don't await a second request on the same
/// [`Toolq`](crate::Toolq) from within the callback or while this one is suspended: it waits until this one is finished
/// or dropped.
#[must_use = "nothing runs until it is awaited"]
pub struct StreamAnswerRequest<'a, R> {
    session: &'a Mutex<EmbeddedSession>,
    reader: R,
    callback: Option<EventCallback<'a>>,
}

impl<'a, R> StreamAnswerRequest<'a, R> {
    pub(crate) fn new(session: &'a Mutex<EmbeddedSession>, reader: R) -> Self {
        Self {
            session,
            reader,
            callback: None,
        }
    }

    /// Calls `callback` for each event, in order. The run doesn't continue until it returns, so it should be quick.
    pub fn events(mut self, callback: impl FnMut(&Event) + Send + 'a) -> Self {
        self.callback = Some(Box::new(callback));
        self
    }
}

impl<'a, R: AsyncRead + Send + Unpin + 'a> IntoFuture for StreamAnswerRequest<'a, R> {
    type Output = Result<Reply, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let mut session = self.session.lock().await;
            let mut source = StreamReader::new(self.reader, session.max_message_bytes());
            session.answer_stream(&mut source, self.callback).await
        })
    }
}
