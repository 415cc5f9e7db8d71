//! Waits for the processes of a killed run. Its reapers kill them, but that takes a moment.

use std::thread;
use std::time::Instant;

use crate::output::{CommandError, Exit};
use crate::session::timing::{PREVIOUS_RUN_EXIT_TIMEOUT, PREVIOUS_RUN_POLL_INTERVAL};
use toolq_log::TaskHistory;

/// Waits until every process that the previous run started is gone. Until then, its calls could still have effects.
///
/// # Errors
/// A reaper of the previous run doesn't exit in time.
pub fn wait_for_exit(history: &TaskHistory) -> Result<(), CommandError> {
    let Some(previous_run) = history.unfinished_process() else {
        return Ok(());
    };
    let started = Instant::now();
    while let Some(pid) = previous_run.live_reaper() {
        if started.elapsed() > PREVIOUS_RUN_EXIT_TIMEOUT {
            let message = format!(
                "programs of the previous run are still running: process {pid} is killing them"
            );
            return Err(CommandError::new(Exit::Log, message).with_hint(
                "wait until that process has exited, or kill it with `kill -9`, then resume again",
            ));
        }
        thread::sleep(PREVIOUS_RUN_POLL_INTERVAL);
    }
    Ok(())
}
