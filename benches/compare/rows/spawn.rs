//! 1,000 `cat` calls, 8 at a time: the cost of validation, ordering, and logging on top of starting the programs.

use crate::bar::PerformanceBar;
use crate::bench_context::BenchContext;
use crate::comparison::{Baseline, ComparisonLine, compare_rounds};
use crate::{Result, inputs, programs};

const CALLS: usize = 1_000;

pub fn thousand_cats(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let response = bench.write_file("cats.json", |out| {
        inputs::write_response(out, "read_note", CALLS)
    })?;
    let lines = bench.write_file("cats.jsonl", |out| inputs::write_inputs(out, CALLS))?;

    let floor = programs::floor("posix_spawn loop", "spawn")?
        .arg(&lines)
        .arg("cat")
        .expect_output(inputs::OUTPUT_MARKER, CALLS)?;
    let ours =
        programs::toolq_run(bench, 8, &response).expect_output(inputs::OUTPUT_MARKER, CALLS)?;
    compare_rounds(
        "1,000 `cat` calls, 8 at a time",
        bench.rounds,
        &ours,
        &[Baseline::new(floor, PerformanceBar::rate(0.9, 0.97))],
    )
}
