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
    let unlogged = programs::floor("toolq without a log, then two syncs a call", "synced")?
        .variable("TOOLQ_TOOLS", programs::tools())
        .args(["--times", &(2 * CALLS).to_string()])
        .arg(bench.path("synced"))
        .args([env!("CARGO_BIN_EXE_toolq"), "run", "-j", "8", "--no-log"])
        .arg(&response);
    let ours = programs::toolq_run(bench, 8, &response).prints(inputs::PROOF, CALLS)?;
    let rivals = [
        Rival::new(synced.prints(inputs::PROOF, CALLS)?, Bar::time(1.5)),
        Rival::new(unlogged.prints(inputs::PROOF, CALLS)?, Bar::time(1.0)),
    ];
    race(
        "200 calls that write, one by one, durable",
        bench.rounds,
        &ours,
        &rivals,
    )
}
