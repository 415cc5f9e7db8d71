//! The sink of a turn, shared with its calls and with the turns of their agents.

use std::sync::{Arc, Mutex, PoisonError};

use crate::attempt::AttemptRunner;
use crate::mcp::emit_notices;
use toolq_core::types::{CallRef, EmitError, Event, EventSink};

/// An event sink behind a shared reference. Copies emit to the same sink.
///
/// All turns that share it are driven by one task, so its lock is never contended.
#[derive(Clone, Copy)]
pub(crate) struct SharedSink<'e>(pub(crate) &'e dyn SyncEventSink);

/// An event sink that can be used through a shared reference.
pub(crate) trait SyncEventSink: Send + Sync {
    fn emit(&self, events: &[Event<'_>]) -> Result<(), EmitError>;
    fn shows_progress(&self, call: &CallRef) -> bool;
}

/// The sink of a turn. What happened to servers is emitted before the next event.
pub(crate) struct TurnSink<'e> {
    sink: Mutex<&'e mut dyn EventSink>,
    runner: Arc<dyn AttemptRunner>,
}

impl<'e> TurnSink<'e> {
    pub(crate) fn new(sink: &'e mut dyn EventSink, runner: &Arc<dyn AttemptRunner>) -> Self {
        Self {
            sink: Mutex::new(sink),
            runner: Arc::clone(runner),
        }
    }
}

impl SyncEventSink for TurnSink<'_> {
    fn emit(&self, events: &[Event<'_>]) -> Result<(), EmitError> {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        emit_notices(&self.runner.take_server_notices(), &mut **sink)?;
        sink.emit(events)
    }

    fn shows_progress(&self, call: &CallRef) -> bool {
        let sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        sink.shows_progress(call)
    }
}

impl SharedSink<'_> {
    /// Emits events like [`EventSink::emit`], but through a shared reference.
    pub(crate) fn emit(&self, events: &[Event<'_>]) -> Result<(), EmitError> {
        self.0.emit(events)
    }
}

impl EventSink for SharedSink<'_> {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        self.0.emit(events)
    }
    fn shows_progress(&self, call: &CallRef) -> bool {
        self.0.shows_progress(call)
    }
}
