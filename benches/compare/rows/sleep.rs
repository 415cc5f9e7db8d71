//! Calls that take 100 ms each, all at once: the rest is toolq's overhead.

use crate::bar::PerformanceBar;
use crate::bench_context::BenchContext;
use crate::comparison::{Baseline, ComparisonLine, compare_rounds};
use crate::{Result, inputs, programs};

const CALLS: usize = 8;

pub fn eight_calls(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let response =
        bench.write_file("naps.json", |out| inputs::write_response(out, "nap", CALLS))?;
    let ours = programs::toolq_run(bench, CALLS, &response).expect_output("tool_use_id", CALLS)?;
    compare_rounds(
        "8 calls of 100 ms",
        bench.rounds,
        &ours,
        &[Baseline::absolute(PerformanceBar::own_time(120.0))],
    )
}
