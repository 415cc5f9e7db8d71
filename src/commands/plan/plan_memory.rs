//! What the memory says of the planned calls: which don't run, since it is known what became of them.

use std::sync::Arc;

use crate::context::CommandContext;
use crate::output::CommandError;
use crate::settings::LogSettings;
use redact::Mask;
use toolq_core::os::Clock;
use toolq_core::types::{CheckedCall, ToolsConfig, TurnOrigin};
use toolq_engine::RememberedWrites;
use toolq_log::memory::{MemoryUse, RecordedHistory, Remembered};

/// The memory of the runs that a plan is for, as far as it concerns one input.
pub(super) struct PlanMemory {
    history: RecordedHistory,
    tools: Arc<ToolsConfig>,
    /// The writes of the current input that have run or may have.
    writes: RememberedWrites,
}

impl PlanMemory {
    /// Opens the memory that `toolq run` would have with the same flags. `None` if it would have none, or if nothing is in it.
    ///
    /// # Errors
    /// The named log can't be read.
    pub(super) fn open(
        settings: &LogSettings,
        tools: &Arc<ToolsConfig>,
        mask: &Arc<Mask>,
        context: &CommandContext,
    ) -> Result<Option<Self>, CommandError> {
        // Without a folder for its state, toolq remembers nothing.
        let Ok(place) = settings.target.memory(&context.environment) else {
            return Ok(None);
        };
        let Some(place) = place else { return Ok(None) };
        let named = settings.target.path();
        let history = RecordedHistory::open(
            (place, named.unwrap_or("".as_ref())),
            MemoryUse {
                remembered: Remembered::ById,
                again: settings.again.clone(),
            },
            tools.root.clone(),
            Arc::clone(mask),
            Clock::system(),
        )?;
        Ok(history.map(|history| Self {
            history,
            tools: Arc::clone(tools),
            writes: RememberedWrites::default(),
        }))
    }

    /// Begins with the next input.
    pub(super) fn begin_input(&mut self) {
        self.writes = RememberedWrites::default();
    }

    /// Finds the writes of a turn that have run or may have. What is read in turns before it must not show what came after.
    pub(super) fn find_writes(&mut self, calls: &[CheckedCall], origin: &TurnOrigin) {
        self.writes.find(&self.history, &self.tools, calls, origin);
    }

    /// Adds to the calls of a turn what is known of them.
    pub(super) fn recall(&mut self, calls: &mut [CheckedCall], origin: &TurnOrigin) {
        self.writes
            .recall(&self.history, &self.tools, calls, origin);
    }
}
