//! The same 1,000 `cat` calls at the end of a 100 MB transcript: a large input must not slow down the calls.

use crate::Result;
use crate::bar::PerformanceBar;
use crate::bench_context::BenchContext;
use crate::comparison::{Baseline, ComparisonLine, compare_rounds};
use crate::inputs;
use crate::programs;

const CALLS: usize = 1_000;
const TRANSCRIPT_BYTES: usize = 100_000_000;

pub fn after_a_transcript(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let short = bench.write_file("cats.json", |out| {
        inputs::write_response(out, "read_note", CALLS)
    })?;
    let long = bench.write_file("transcript.json", |out| {
        inputs::write_transcript(out, "read_note", CALLS, TRANSCRIPT_BYTES)
    })?;
    let timed = |input| {
        programs::toolq_run(bench, 8, input)
            .timed_by_log()
            .expect_output(inputs::OUTPUT_MARKER, CALLS)
    };
    let mut without = timed(&short)?;
    without.name = "toolq without the transcript";
    let baseline = Baseline::new(without, PerformanceBar::rate(0.9, 1.0));
    compare_rounds(
        "only the calls, after a 100 MB transcript",
        bench.rounds,
        &timed(&long)?,
        &[baseline],
    )
}
