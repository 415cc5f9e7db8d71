//! An event sink that can be observed.

use toolq_core::types::{CallRef, EmitError, Event, EventSink};

/// Shows events to an observer, then passes them on.
pub(crate) struct ObservedSink<'s> {
    observe: &'s mut (dyn FnMut(&Event<'_>) + Send),
    inner: &'s mut dyn EventSink,
}

impl<'s> ObservedSink<'s> {
    pub(crate) fn new(
        observe: &'s mut (dyn FnMut(&Event<'_>) + Send),
        inner: &'s mut dyn EventSink,
    ) -> Self {
        Self { observe, inner }
    }
}

impl EventSink for ObservedSink<'_> {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        for event in events {
            (self.observe)(event);
        }
        self.inner.emit(events)
    }

    fn flush(&mut self) -> Result<(), EmitError> {
        self.inner.flush()
    }

    fn shows_progress(&self, call: &CallRef) -> bool {
        self.inner.shows_progress(call)
    }
}
