use crate::types::event::Event;

/// Somebody who is told. `execute` knows neither log nor screen, only this.
pub trait Sink: Send {
    /// Takes events in the order in which they happened; those of one slice happen together.
    ///
    /// # Errors
    /// A sink that can't record what it is told says why. Calls whose `Started` is in a refused slice do not run; other
    /// events are told to the remaining sinks all the same.
    fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused>;

    /// Returns when the results that it was told will be remembered, whatever happens now: they are about to be read, or
    /// nothing follows at once that would be remembered with them.
    ///
    /// # Errors
    /// A sink that can't promise that says why.
    fn settle(&mut self) -> Result<(), Refused> {
        Ok(())
    }
}

/// A sink could not take an event: why, in words for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);
