//! The startup cost of toolq: commands that do next to nothing.

use crate::bar::PerformanceBar;
use crate::bench_context::BenchContext;
use crate::comparison::{Baseline, ComparisonLine, compare_rounds};
use crate::{Result, inputs, programs};

/// A round takes only milliseconds, so there are more of them.
const ROUNDS_FACTOR: usize = 10;

pub fn version(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let ours = programs::toolq()
        .arg("--version")
        .expect_output("toolq ", 1)?;
    let jq = programs::installed("jq --version", "jq", "install jq")
        .arg("--version")
        .expect_output("jq-", 1)?;
    compare_rounds(
        "`toolq --version`",
        bench.rounds * ROUNDS_FACTOR,
        &ours,
        &[Baseline::new(jq, PerformanceBar::time(2.0))],
    )
}

pub fn plan(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let tools = bench.write_file("thirty.yaml", |out| inputs::write_tools_file(out, 30))?;
    let response = bench.write_file("one.json", |out| inputs::write_response(out, "tool_7", 1))?;
    let ours = programs::toolq_plan(&response)
        .env("TOOLQ_TOOLS", tools)
        .expect_output("tool_use_id", 1)?;
    compare_rounds(
        "`plan` of one call with 30 tools",
        bench.rounds * ROUNDS_FACTOR,
        &ours,
        &[Baseline::absolute(PerformanceBar::own_time(8.0))],
    )
}

/// Only one of the tools is called, so only its schema has to be compiled.
pub fn plan_with_patterns(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let tools = bench.write_file("patterns.yaml", |out| {
        inputs::write_patterned_tools_file(out, 32)
    })?;
    let response = bench.write_file("patterned.json", |out| {
        inputs::write_response_of(out, &["tool_7"], 1, inputs::patterned_input)
    })?;
    let ours = programs::toolq_plan(&response)
        .env("TOOLQ_TOOLS", tools)
        .expect_output("tool_use_id", 1)?;
    compare_rounds(
        "`plan` of one call with 32 tools of 6 patterns each",
        bench.rounds * ROUNDS_FACTOR,
        &ours,
        &[Baseline::absolute(PerformanceBar::own_time(12.0))],
    )
}
