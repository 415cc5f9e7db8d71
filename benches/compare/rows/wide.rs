//! 100,000 calls in one turn, planned: ten times the calls in about ten times the time.

use crate::Result;
use crate::bar::Bar;
use crate::contestant::Contestant;
use crate::inputs;
use crate::programs;
use crate::race::{Line, Rival, race};
use crate::workbench::Workbench;

const CALLS: usize = 100_000;

pub fn one_turn(bench: &Workbench) -> Result<Vec<Line>> {
    let plan = |calls| -> Result<Contestant> {
        let file = bench.file(&format!("{calls}.json"), |out| {
            inputs::response(out, "read_note", calls)
        })?;
        programs::toolq_plan(&file).prints("tool_use_id", calls)
    };
    let mut tenth = plan(CALLS / 10)?;
    tenth.name = "a tenth of them";
    let rival = Rival::new(tenth, Bar::time(11.0));
    race(
        "100,000 calls in one turn, planned",
        bench.rounds,
        &plan(CALLS)?,
        &[rival],
    )
}
