//! What happened to servers. Only turns emit events, so it waits here for the next one.

use std::sync::{Arc, Mutex, PoisonError};

use toolq_core::types::{EmitError, Event, EventSink, ServerEnd, ServerStart};

/// What happened to a server.
#[derive(Debug)]
pub(crate) enum ServerNotice {
    /// It is ready, or ended before it was.
    Started(ServerStart),
    /// It has ended.
    Ended(Box<ServerEnd>),
}

/// What happened to servers and isn't emitted yet, in order. Copies share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerNotices(Arc<Mutex<Vec<ServerNotice>>>);

impl ServerNotices {
    pub(crate) fn add(&self, notice: ServerNotice) {
        let mut notices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notices.push(notice);
    }

    pub(crate) fn take(&self) -> Vec<ServerNotice> {
        let mut notices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut notices)
    }
}

/// Emits notices.
///
/// # Errors
/// A sink refuses them.
pub(crate) fn emit_notices(
    notices: &[ServerNotice],
    sink: &mut dyn EventSink,
) -> Result<(), EmitError> {
    if notices.is_empty() {
        return Ok(());
    }
    let events = notices.iter().map(|notice| match notice {
        ServerNotice::Started(start) => Event::ServerStarted(start),
        ServerNotice::Ended(end) => Event::ServerEnded(end),
    });
    sink.emit(&events.collect::<Vec<_>>())
}
