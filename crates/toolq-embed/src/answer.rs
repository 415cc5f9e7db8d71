//! Answers a message.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use tokio::sync::Mutex;

use crate::error::Error;
use crate::event::{Event, EventCallback};
use crate::reply::Reply;
use crate::session::EmbeddedSession;

/// A message that is about to be answered. Await it.
///
/// Dropping the future kills what it runs, and loses the results of calls that had finished. They are in the session
/// log, but answering the same message again runs its calls again. Don't await a second request on the same
/// [`Toolq`](crate::Toolq) from within the callback or while this one is suspended: it waits until this one is finished
/// or dropped.
#[must_use = "nothing runs until it is awaited"]
pub struct AnswerRequest<'a> {
    session: &'a Mutex<EmbeddedSession>,
    message: Vec<u8>,
    callback: Option<EventCallback<'a>>,
}

impl<'a> AnswerRequest<'a> {
    pub(crate) fn new(session: &'a Mutex<EmbeddedSession>, message: Vec<u8>) -> Self {
        Self {
            session,
            message,
            callback: None,
        }
    }

    /// Calls `callback` for each event, in order. The run doesn't continue until it returns, so it should be quick.
    pub fn events(mut self, callback: impl FnMut(&Event) + Send + 'a) -> Self {
        self.callback = Some(Box::new(callback));
        self
    }
}

impl<'a> IntoFuture for AnswerRequest<'a> {
    type Output = Result<Reply, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let mut session = self.session.lock().await;
            session.answer(self.message, self.callback).await
        })
    }
}
