//! The interface between the engine and its observers.

use crate::types::call::CallRef;
use crate::types::event::Event;

/// Receives engine events. The engine knows nothing about logs or terminals beyond this trait.
pub trait EventSink: Send {
    /// Handles events in the order in which they happened. Events of one slice happened together.
    ///
    /// # Errors
    /// The sink can't record the events. Calls whose `Started` event is in the slice don't run. All other events still
    /// reach the remaining sinks.
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError>;

    /// Returns whether the progress of a running call is shown. If not, servers aren't asked to report it.
    fn shows_progress(&self, _call: &CallRef) -> bool {
        true
    }
}

/// Why a sink couldn't handle an event, as a message for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EmitError(pub String);
