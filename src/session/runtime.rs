//! What commands need to run calls in addition to the engine: the tokio runtime, default settings, and background
//! tasks.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::context::CommandContext;
use crate::output::CommandError;
use crate::output::stdout;
use crate::terminal::ProgressScreen;
use redact::Mask;
use toolq_core::types::{HaltCause, ToolsConfig};
use toolq_engine::{EngineSettings, RunControl};

/// Time between two frames of a progress bar.
const FRAME_INTERVAL: Duration = Duration::from_millis(100);

/// Returns the default engine settings: no log, nothing to resume, no budgets.
pub fn default_engine_settings(
    tools: &Arc<ToolsConfig>,
    mask: &Arc<Mask>,
    context: &CommandContext,
) -> EngineSettings {
    EngineSettings {
        // The running executable, even if its file was replaced in the meantime.
        supervisor_program: Some("/proc/self/exe".into()),
        ..EngineSettings::new(
            Arc::clone(tools),
            Arc::clone(&context.environment),
            Arc::clone(mask),
        )
    }
}

/// Builds the tokio runtime that calls run on.
///
/// # Errors
/// The threads can't be started.
pub fn build_runtime() -> Result<Runtime, CommandError> {
    let cores = thread::available_parallelism().map_or(2, usize::from);
    Builder::new_multi_thread()
        .worker_threads(cores.clamp(2, 8))
        .enable_all()
        .build()
        .map_err(|error| CommandError::usage(format!("failed to start worker threads: {error}")))
}

/// Halts the run when the reader of stdout is gone.
pub async fn halt_when_stdout_closes(control: RunControl) {
    stdout::wait_until_closed().await;
    control.halt(HaltCause::OutputLost);
}

/// Starts a task that redraws the bars of `screen` at intervals, until it is aborted.
pub fn spawn_ticker(screen: ProgressScreen) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut frames = tokio::time::interval(FRAME_INTERVAL);
        loop {
            frames.tick().await;
            screen.tick();
        }
    })
}
