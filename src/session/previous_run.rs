//! What a killed run has left running: nothing, but for the moment that its keepers need to end it.

use std::thread;
use std::time::{Duration, Instant};

use crate::output::{Exit, Failure};
use toolq_log::History;

/// How long they may need. A keeper waits for a second until what it killed is gone, its root for three until its
/// keepers are.
const PATIENCE: Duration = Duration::from_secs(6);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(5);

/// Waits until nothing runs any more of what the run before has started: nobody could say whether it is done before.
///
/// # Errors
/// Something of it doesn't end.
pub fn wait(history: &History) -> Result<(), Failure> {
    let Some(before) = history.unfinished() else {
        return Ok(());
    };
    let since = Instant::now();
    while let Some(pid) = before.survivor() {
        if since.elapsed() > PATIENCE {
            let message =
                format!("processes of the run before still run: process {pid} is ending them");
            return Err(Failure::new(Exit::Log, message)
                .with_hint("wait until it is gone, or end it with `kill -9`, and resume again"));
        }
        thread::sleep(LOOK);
    }
    Ok(())
}
