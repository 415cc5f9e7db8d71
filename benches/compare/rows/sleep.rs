//! Calls that take 100 ms each, all at once: what is left is what toolq itself takes.

use std::time::Duration;

use crate::Result;
use crate::bar::Bar;
use crate::inputs;
use crate::programs;
use crate::race::{Line, Rival, race};
use crate::workbench::Workbench;

/// Of each call.
const NAP: Duration = Duration::from_millis(100);

pub fn eight(bench: &Workbench) -> Result<Vec<Line>> {
    at_once(bench, "8 calls of 100 ms", 8, Bar::longer(15.0))
}

pub fn sixty_four(bench: &Workbench) -> Result<Vec<Line>> {
    at_once(
        bench,
        "64 calls of 100 ms at `-j64`: over 100 ms",
        64,
        Bar::overhead(NAP, 1.5),
    )
}

fn at_once(bench: &Workbench, work: &'static str, calls: usize, bar: Bar) -> Result<Vec<Line>> {
    let response = bench.file("naps.json", |out| inputs::response(out, "nap", calls))?;
    let lines = bench.file("naps.jsonl", |out| inputs::lines(out, calls))?;
    let ours = programs::toolq_run(bench, calls, &response).prints("tool_use_id", calls)?;
    let floor = programs::floor("posix_spawn loop", "spawn")?
        .arg("--jobs")
        .arg(calls.to_string())
        .arg(lines)
        .args(["sleep", "0.1"]);
    race(work, bench.rounds, &ours, &[Rival::new(floor, bar)])
}
