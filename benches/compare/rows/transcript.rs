//! The same 1,000 `cat` calls as the end of a 100 MB transcript: what was read before must not slow down what runs.

use crate::Result;
use crate::bar::Bar;
use crate::inputs;
use crate::programs;
use crate::race::{Line, Rival, race};
use crate::workbench::Workbench;

const CALLS: usize = 1_000;
const BYTES: usize = 100_000_000;

pub fn after_a_transcript(bench: &Workbench) -> Result<Vec<Line>> {
    let short = bench.file("cats.json", |out| inputs::response(out, "read_note", CALLS))?;
    let long = bench.file("transcript.json", |out| {
        inputs::transcript(out, "read_note", CALLS, BYTES)
    })?;
    let timed = |input| {
        programs::toolq_run(bench, 8, input)
            .timed_by_log()
            .prints(inputs::PROOF, CALLS)
    };
    let mut without = timed(&short)?;
    without.name = "toolq without it";
    let rival = Rival::new(without, Bar::rate(0.9, 1.0));
    race(
        "the calls themselves, after a transcript of 100 MB",
        bench.rounds,
        &timed(&long)?,
        &[rival],
    )
}
