//! Calls that do something, one by one: what a log costs that survives a loss of power, beside two syncs a call.

use crate::Result;
use crate::bar::Bar;
use crate::inputs;
use crate::programs;
use crate::race::{Line, Rival, race};
use crate::workbench::Workbench;

const CALLS: usize = 200;

pub fn synced_cats(bench: &Workbench) -> Result<Vec<Line>> {
    let response = bench.file("kept.json", |out| inputs::response(out, "keep_note", CALLS))?;
    let lines = bench.file("kept.jsonl", |out| inputs::lines(out, CALLS))?;
    let synced = programs::floor("posix_spawn loop, two syncs each", "spawn")?
        .args(["--jobs", "1", "--synced"])
        .arg(bench.path("synced"))
        .arg(&lines)
        .arg("cat");
    let ours = programs::toolq_run(bench, 8, &response).prints(inputs::PROOF, CALLS)?;
    race(
        "200 calls that write, one by one, durable",
        bench.rounds,
        &ours,
        &[Rival::new(
            synced.prints(inputs::PROOF, CALLS)?,
            Bar::time(1.5),
        )],
    )
}
