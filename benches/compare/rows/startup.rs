//! What a command costs that does next to nothing.

use crate::Result;
use crate::bar::Bar;
use crate::inputs;
use crate::programs;
use crate::race::{Line, Rival, race};
use crate::workbench::Workbench;

/// A round is over in milliseconds, so there are more of them.
const MORE: usize = 10;

pub fn version(bench: &Workbench) -> Result<Vec<Line>> {
    let ours = programs::toolq().arg("--version").prints("toolq ", 1)?;
    let jq = programs::installed("jq --version", "jq", "install jq")
        .arg("--version")
        .prints("jq-", 1)?;
    race(
        "`toolq --version`",
        bench.rounds * MORE,
        &ours,
        &[Rival::new(jq, Bar::time(2.0))],
    )
}

pub fn plan(bench: &Workbench) -> Result<Vec<Line>> {
    let tools = bench.file("thirty.yaml", |out| inputs::tools(out, 30))?;
    let response = bench.file("one.json", |out| inputs::response(out, "tool_7", 1))?;
    let ours = programs::toolq_plan(&response)
        .variable("TOOLQ_TOOLS", tools)
        .prints("tool_use_id", 1)?;
    race(
        "`plan` of one call with 30 tools",
        bench.rounds * MORE,
        &ours,
        &[Rival::none(Bar::alone(10.0))],
    )
}
