//! `plan` of 300 MB of JSONL: faster than jq counts its blocks, in memory that doesn't grow with the input.

use crate::bar::PerformanceBar;
use crate::bench_context::BenchContext;
use crate::comparison::{Baseline, ComparisonLine, compare_rounds};
use crate::{Result, inputs, programs};

const INPUT_BYTES: usize = 300_000_000;

pub fn many_turns(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let mut turns = 0;
    let recording = bench.write_file("turns.jsonl", |out| {
        turns = inputs::write_turns(out, INPUT_BYTES)?;
        Ok(())
    })?;
    let ours = programs::toolq_plan(&recording).expect_output("tool_use_id", 2 * turns)?;
    let jq = programs::installed("jq -c '.content\\|length'", "jq", "install jq")
        .args(["-c", ".content|length"])
        .arg(recording)
        .expect_output("3\n", turns)?;
    let baselines = [
        Baseline::new(jq, PerformanceBar::rate(1.0, 2.0)),
        Baseline::absolute(PerformanceBar::memory(64.0)),
    ];
    compare_rounds(
        "300 MB of JSONL through `plan --format json`",
        bench.rounds,
        &ours,
        &baselines,
    )
}
