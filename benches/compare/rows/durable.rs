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
    let unlogged = programs::floor("toolq without a log, plus two fsyncs per call", "synced")?
        .env("TOOLQ_TOOLS", programs::tools_path())
        .args(["--times", &(2 * CALLS).to_string()])
        .arg(bench.path("synced"))
        .args([env!("CARGO_BIN_EXE_toolq"), "run", "-j", "8", "--no-log"])
        .arg(&response);
    let ours =
        programs::toolq_run(bench, 8, &response).expect_output(inputs::OUTPUT_MARKER, CALLS)?;
    let baselines = [
        Baseline::new(
            synced.expect_output(inputs::OUTPUT_MARKER, CALLS)?,
            PerformanceBar::time(1.5),
        ),
        Baseline::new(
            unlogged.expect_output(inputs::OUTPUT_MARKER, CALLS)?,
            PerformanceBar::time(1.0),
        ),
    ];
    compare_rounds(
        "200 durable write calls, one at a time",
        bench.rounds,
        &ours,
        &baselines,
    )
}
