//! `run --resume` of a finished run: reads and verifies the log, compares the input, and prints the results.

use std::process::Command;

use crate::Result;
use crate::bar::PerformanceBar;
use crate::bench_context::BenchContext;
use crate::comparison::{Baseline, ComparisonLine, compare_rounds};
use crate::inputs;
use crate::programs;

const CALLS: usize = 5_000;

pub fn finished_calls(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let input = bench.write_file("finished.json", |out| {
        inputs::write_response(out, "read_note", CALLS)
    })?;
    let log = bench.path("finished.jsonl");
    let run = |more: &[&str]| {
        let arguments = programs::toolq().args(["run", "-q", "--log"]).arg(&log);
        arguments.args(more.iter().copied()).arg(&input)
    };
    let first = Command::new(env!("CARGO_BIN_EXE_toolq"))
        .args(["run", "-q", "--tools"])
        .arg(programs::tools_path())
        .arg("--log")
        .arg(&log)
        .arg(&input)
        .output()?;
    if !first.status.success() {
        return Err("the run to resume failed".into());
    }
    let mut plan = programs::toolq_plan(&input);
    plan.name = "`plan` of the same input";
    compare_rounds(
        "resume of 5,000 finished calls",
        bench.rounds,
        &run(&["--resume"]).expect_output(inputs::OUTPUT_MARKER, CALLS)?,
        &[
            Baseline::absolute(PerformanceBar::own_time(50.0)),
            Baseline::new(plan, PerformanceBar::extra_time(50.0)),
        ],
    )
}
