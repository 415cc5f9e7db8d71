//! Starts the supervisor of a run while its inputs are still being read.

use std::path::Path;

use procfence::ReaperPools;

use crate::call_setup::SUPERVISOR_PROGRAM;
use toolq_core::types::ToolsConfig;
use toolq_engine::start_reaper_pools;

/// Reading at least this much takes as long as starting a program. For a shorter input, the session starts the supervisor when
/// it begins.
const LONG_INPUT_BYTES: u64 = 256 << 10;

/// Starts the supervisor of a run whose inputs are about to be read. Returns `None`, and starts nothing, if the inputs are short, if
/// one of them isn't a regular file and so may keep the run waiting, or if none of `tools` would use a supervisor.
pub fn start_reapers_early<'p>(
    inputs: impl IntoIterator<Item = &'p Path>,
    tools: &ToolsConfig,
) -> Option<ReaperPools> {
    let mut total = 0;
    for input in inputs {
        // `-` is stdin, even where there is a file of that name.
        let file = (input != "-").then(|| input.metadata().ok()).flatten()?;
        if !file.is_file() {
            return None;
        }
        total += file.len();
    }
    (total >= LONG_INPUT_BYTES)
        .then(|| start_reaper_pools(tools, SUPERVISOR_PROGRAM.as_ref()))
        .flatten()
}
