//! Passes the events of a message to the log and to the caller.

use redact::Mask;
use toolq_core::types::{CallRef, EmitError, Event as EngineEvent, EventSink};
use toolq_log::SessionLog;

use crate::event::{Event, EventCallback};

/// Writes events to the log first, then calls the callback.
pub(crate) struct CallbackSink<'a, 'c> {
    log: Option<&'a mut SessionLog>,
    mask: &'a Mask,
    callback: Option<&'a mut EventCallback<'c>>,
}

impl<'a, 'c> CallbackSink<'a, 'c> {
    pub(crate) fn new(
        log: Option<&'a mut SessionLog>,
        mask: &'a Mask,
        callback: &'a mut Option<EventCallback<'c>>,
    ) -> Self {
        Self {
            log,
            mask,
            callback: callback.as_mut(),
        }
    }
}

impl EventSink for CallbackSink<'_, '_> {
    fn emit(&mut self, events: &[EngineEvent<'_>]) -> Result<(), EmitError> {
        let result = match &mut self.log {
            Some(log) => log.emit(events),
            None => Ok(()),
        };
        if let Some(callback) = &mut self.callback {
            let events = events
                .iter()
                .filter_map(|event| Event::from_engine(event, self.mask));
            events.for_each(|event| callback(&event));
        }
        result
    }

    fn shows_progress(&self, _: &CallRef) -> bool {
        self.callback.is_some()
    }
}
