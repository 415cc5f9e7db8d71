//! `plan` of 100,000 calls in one turn: ten times as many calls take about ten times as long.

use crate::Result;
use crate::bar::PerformanceBar;
use crate::bench_context::BenchContext;
use crate::bench_program::BenchProgram;
use crate::comparison::{Baseline, ComparisonLine, compare_rounds};
use crate::inputs;
use crate::programs;

const CALLS: usize = 100_000;

pub fn one_turn(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let plan = |calls| -> Result<BenchProgram> {
        let file = bench.write_file(&format!("{calls}.json"), |out| {
            inputs::write_response(out, "read_note", calls)
        })?;
        programs::toolq_plan(&file).expect_output("tool_use_id", calls)
    };
    let mut tenth = plan(CALLS / 10)?;
    tenth.name = "10,000 calls";
    let baseline = Baseline::new(tenth, PerformanceBar::time(11.0));
    compare_rounds(
        "100,000 calls in one turn, planned",
        bench.rounds,
        &plan(CALLS)?,
        &[baseline],
    )
}
