//! `replay` without running anything and `plan` of a 1 GB conversation: at disk speed, in constant memory.

use crate::Result;
use crate::bar::PerformanceBar;
use crate::bench_context::BenchContext;
use crate::bench_program::BenchProgram;
use crate::comparison::{Baseline, ComparisonLine, compare_rounds};
use crate::inputs;
use crate::programs;

const INPUT_BYTES: usize = 1_000_000_000;
const INPUT_MEGABYTES: f64 = 1_000.0;
/// 64 MiB.
const MAX_MEMORY_MB: f64 = 67.1;
/// A round takes half a minute, most of it in jq.
const MAX_ROUNDS: usize = 3;

pub fn replayed_and_planned(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let mut turns = 0;
    let recording = bench.write_file("conversation.jsonl", |out| {
        turns = inputs::write_conversation(out, INPUT_BYTES)?;
        Ok(())
    })?;
    let rounds = bench.rounds.min(MAX_ROUNDS);
    let matched = format!("\"served\":{calls},\"matched\":{calls}", calls = 2 * turns);
    let replayed = programs::toolq_replay(&recording).expect_output(&matched, 1)?;
    let planned = programs::toolq_plan(&recording)
        .arg("--all")
        .expect_output("tool_use_id", 2 * turns)?;
    let mut lines = Vec::new();
    for (work, ours) in [
        ("1 GB of JSONL through `replay --execute none`", replayed),
        ("1 GB of JSONL through `plan --all --format json`", planned),
    ] {
        lines.extend(compare_rounds(
            work,
            rounds,
            &ours,
            &baselines(&recording, turns)?,
        )?);
    }
    Ok(lines)
}

fn baselines(recording: &std::path::Path, turns: usize) -> Result<Vec<Baseline>> {
    let jq: BenchProgram = programs::installed("jq length", "jq", "install jq")
        .arg("length")
        .arg(recording)
        .expect_output("2\n", 2 * turns)?;
    Ok(vec![
        Baseline::new(jq, PerformanceBar::rate(1.0, 2.0)),
        Baseline::absolute(PerformanceBar::throughput(INPUT_MEGABYTES, 150.0)),
        Baseline::absolute(PerformanceBar::memory(MAX_MEMORY_MB)),
    ])
}
