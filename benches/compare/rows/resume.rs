//! What toolq itself does to resume a run in which nothing is missing: read and verify its log, compare the input, print.

use std::process::Command;

use crate::Result;
use crate::bar::Bar;
use crate::inputs;
use crate::programs;
use crate::race::{Line, Rival, race};
use crate::workbench::Workbench;

const CALLS: usize = 5_000;

pub fn finished_calls(bench: &Workbench) -> Result<Vec<Line>> {
    let input = bench.file("finished.json", |out| {
        inputs::response(out, "read_note", CALLS)
    })?;
    let log = bench.path("finished.jsonl");
    let run = |more: &[&str]| {
        let arguments = programs::toolq().args(["run", "-q", "--log"]).arg(&log);
        arguments.args(more.iter().copied()).arg(&input)
    };
    let first = Command::new(env!("CARGO_BIN_EXE_toolq"))
        .args(["run", "-q", "--tools"])
        .arg(programs::tools())
        .arg("--log")
        .arg(&log)
        .arg(&input)
        .output()?;
    if !first.status.success() {
        return Err("the run that is to be resumed failed".into());
    }
    let mut plan = programs::toolq_plan(&input);
    plan.name = "`plan` of the same input";
    race(
        "resume of 5,000 finished calls",
        bench.rounds,
        &run(&["--resume"]).prints(inputs::PROOF, CALLS)?,
        &[
            Rival::none(Bar::alone(50.0)),
            Rival::new(plan, Bar::longer(50.0)),
        ],
    )
}
