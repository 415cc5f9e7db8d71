//! 300 MB of JSONL, planned: faster than jq counts its blocks, and in memory that does not grow with it.

use crate::Result;
use crate::bar::Bar;
use crate::inputs;
use crate::programs;
use crate::race::{Line, Rival, race};
use crate::workbench::Workbench;

const BYTES: usize = 300_000_000;

pub fn many_turns(bench: &Workbench) -> Result<Vec<Line>> {
    let mut turns = 0;
    let recording = bench.file("turns.jsonl", |out| {
        turns = inputs::turns(out, BYTES)?;
        Ok(())
    })?;
    let ours = programs::toolq_plan(&recording).prints("tool_use_id", 2 * turns)?;
    let jq = programs::installed("jq -c '.content\\|length'", "jq", "install jq")
        .args(["-c", ".content|length"])
        .arg(recording)
        .prints("3\n", turns)?;
    let rivals = [
        Rival::new(jq, Bar::rate(1.0, 2.0)),
        Rival::none(Bar::memory(64.0)),
    ];
    race(
        "300 MB of JSONL through `plan --format json`",
        bench.rounds,
        &ours,
        &rivals,
    )
}
