//! The engine of the runtime that answers.

use tokio::runtime::{Handle, Id};
use toolq_core::types::{EmitError, EventSink};
use toolq_engine::{Engine, EngineSettings};

use crate::error::Error;

/// An engine whose sockets and processes belong to one runtime. If a message is answered on another runtime, it gets a
/// new engine: the old runtime may be gone, or may not be polled anymore.
pub(crate) struct RuntimeEngine {
    settings: EngineSettings,
    engine: Option<(Id, Engine)>,
}

impl RuntimeEngine {
    /// Starts nothing yet.
    pub(crate) fn new(settings: EngineSettings) -> Self {
        Self {
            settings,
            engine: None,
        }
    }

    /// Returns the engine of the current runtime.
    ///
    /// # Errors
    /// [`Error::NoRuntime`] outside a Tokio runtime.
    pub(crate) fn current(&mut self) -> Result<&mut Engine, Error> {
        let runtime = Handle::try_current().map_err(|_| Error::NoRuntime)?.id();
        if self.engine.as_ref().is_some_and(|(id, _)| *id != runtime) {
            self.close();
        }
        let settings = &self.settings;
        let (_, engine) = self
            .engine
            .get_or_insert_with(|| (runtime, Engine::new(settings.clone())));
        Ok(engine)
    }

    /// Ends the servers, and emits what happened to them.
    ///
    /// # Errors
    /// `sink` refuses the events.
    pub(crate) fn end_servers(&self, sink: &mut dyn EventSink) -> Result<(), EmitError> {
        let engine = self.engine.as_ref();
        engine.map_or(Ok(()), |(_, engine)| engine.end_servers(sink))
    }

    /// Stops the processes that the engine keeps ready.
    pub(crate) fn close(&mut self) {
        if let Some((_, engine)) = self.engine.take() {
            engine.close();
        }
    }
}
