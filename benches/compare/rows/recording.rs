//! A conversation of 1 GB, replayed without running anything, and planned: at the speed of a disk, in flat memory.

use crate::Result;
use crate::bar::Bar;
use crate::contestant::Contestant;
use crate::inputs;
use crate::programs;
use crate::race::{Line, Rival, race};
use crate::workbench::Workbench;

const BYTES: usize = 1_000_000_000;
const MEGABYTES: f64 = 1_000.0;
/// 64 MiB.
const MEMORY: f64 = 67.1;
/// Each round takes half a minute, most of it jq's.
const MOST_ROUNDS: usize = 3;

pub fn replayed_and_planned(bench: &Workbench) -> Result<Vec<Line>> {
    let mut turns = 0;
    let recording = bench.file("conversation.jsonl", |out| {
        turns = inputs::conversation(out, BYTES)?;
        Ok(())
    })?;
    let rounds = bench.rounds.min(MOST_ROUNDS);
    let matched = format!("\"served\":{calls},\"matched\":{calls}", calls = 2 * turns);
    let replayed = programs::toolq_replay(&recording).prints(&matched, 1)?;
    let planned = programs::toolq_plan(&recording)
        .arg("--all")
        .prints("tool_use_id", 2 * turns)?;
    let mut lines = Vec::new();
    for (work, ours) in [
        ("1 GB of JSONL through `replay --execute none`", replayed),
        ("1 GB of JSONL through `plan --all --format json`", planned),
    ] {
        lines.extend(race(work, rounds, &ours, &rivals(&recording, turns)?)?);
    }
    Ok(lines)
}

fn rivals(recording: &std::path::Path, turns: usize) -> Result<Vec<Rival>> {
    let jq: Contestant = programs::installed("jq length", "jq", "install jq")
        .arg("length")
        .arg(recording)
        .prints("2\n", 2 * turns)?;
    Ok(vec![
        Rival::new(jq, Bar::rate(1.0, 2.0)),
        Rival::none(Bar::speed(MEGABYTES, 150.0)),
        Rival::none(Bar::memory(MEMORY)),
    ])
}
