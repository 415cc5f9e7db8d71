//! Calls with side effects, one at a time: the cost of a log that survives power loss, versus two fsyncs per call.

use crate::Result;
use crate::bar::PerformanceBar;
use crate::bench_context::BenchContext;
use crate::comparison::{Baseline, ComparisonLine, compare_rounds};
use crate::inputs;
use crate::programs;

const CALLS: usize = 200;

pub fn synced_cats(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let response = bench.write_file("kept.json", |out| {
        inputs::write_response(out, "keep_note", CALLS)
    })?;
    let lines = bench.write_file("kept.jsonl", |out| inputs::write_inputs(out, CALLS))?;
    let synced = programs::floor("posix_spawn loop, two fsyncs each", "spawn")?
        .args(["--jobs", "1", "--synced"])
        .arg(bench.path("synced"))
        .arg(&lines)
        .arg("cat");
    let ours =
        programs::toolq_run(bench, 8, &response).expect_output(inputs::OUTPUT_MARKER, CALLS)?;
    let synced = synced.expect_output(inputs::OUTPUT_MARKER, CALLS)?;
    compare_rounds(
        "200 durable write calls, one at a time",
        bench.rounds,
        &ours,
        &[Baseline::new(synced, PerformanceBar::time(1.25))],
    )
}
