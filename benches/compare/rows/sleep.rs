//! Calls that take 100 ms each, all at once: the rest is toolq's overhead.

use std::time::Duration;

use crate::Result;
use crate::bar::PerformanceBar;
use crate::bench_context::BenchContext;
use crate::comparison::{Baseline, ComparisonLine, compare_rounds};
use crate::inputs;
use crate::programs;

/// Duration of each call.
const CALL_DURATION: Duration = Duration::from_millis(100);

pub fn eight_calls(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    calls_at_once(
        bench,
        "8 calls of 100 ms",
        8,
        PerformanceBar::extra_time(15.0),
        Some(PerformanceBar::own_time(115.0)),
    )
}

pub fn sixty_four_calls(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    calls_at_once(
        bench,
        "64 calls of 100 ms at `-j64`: time beyond 100 ms",
        64,
        PerformanceBar::overhead(CALL_DURATION, 1.4),
        None,
    )
}

fn calls_at_once(
    bench: &BenchContext,
    work: &'static str,
    calls: usize,
    bar: PerformanceBar,
    own_bar: Option<PerformanceBar>,
) -> Result<Vec<ComparisonLine>> {
    let response =
        bench.write_file("naps.json", |out| inputs::write_response(out, "nap", calls))?;
    let lines = bench.write_file("naps.jsonl", |out| inputs::write_inputs(out, calls))?;
    let ours = programs::toolq_run(bench, calls, &response).expect_output("tool_use_id", calls)?;
    let floor = programs::floor("posix_spawn loop", "spawn")?
        .arg("--jobs")
        .arg(calls.to_string())
        .arg(lines)
        .args(["sleep", "0.1"]);
    let own_time = own_bar.map(Baseline::absolute);
    let baselines: Vec<Baseline> = [Baseline::new(floor, bar)]
        .into_iter()
        .chain(own_time)
        .collect();
    compare_rounds(work, bench.rounds, &ours, &baselines)
}
