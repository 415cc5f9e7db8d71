//! The sink of a turn, shared with the turns of agents that the same dispatcher drives.

use std::sync::{Mutex, PoisonError};

use toolq_core::types::{Event, Refused, Sink};

/// Who is told. Copies tell the same.
///
/// All turns that share it are driven by one task, so that nobody ever waits for the lock.
#[derive(Clone, Copy)]
pub(crate) struct Ears<'e>(pub(crate) &'e dyn Told);

/// A sink that may be told through a shared reference.
pub(crate) trait Told: Send + Sync {
    fn tell(&self, events: &[Event<'_>]) -> Result<(), Refused>;
    fn settle(&self) -> Result<(), Refused>;
}

impl Told for Mutex<&mut dyn Sink> {
    fn tell(&self, events: &[Event<'_>]) -> Result<(), Refused> {
        let mut sink = self.lock().unwrap_or_else(PoisonError::into_inner);
        sink.tell(events)
    }

    fn settle(&self) -> Result<(), Refused> {
        let mut sink = self.lock().unwrap_or_else(PoisonError::into_inner);
        sink.settle()
    }
}

impl Ears<'_> {
    /// As [`Sink::tell`].
    pub(crate) fn tell(&self, events: &[Event<'_>]) -> Result<(), Refused> {
        self.0.tell(events)
    }
}

impl Sink for Ears<'_> {
    fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
        self.0.tell(events)
    }
    fn settle(&mut self) -> Result<(), Refused> {
        self.0.settle()
    }
}
