//! 1,000 `cat` calls, 8 at a time: what validating, ordering and logging costs beside starting the programs.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use crate::Result;
use crate::bar::Bar;
use crate::inputs;
use crate::programs;
use crate::race::{Line, Rival, race};
use crate::workbench::Workbench;

const CALLS: usize = 1_000;

pub fn thousand_cats(bench: &Workbench) -> Result<Vec<Line>> {
    let response = bench.file("cats.json", |out| inputs::response(out, "read_note", CALLS))?;
    let lines = bench.file("cats.jsonl", |out| inputs::lines(out, CALLS))?;

    let rivals = [
        (
            programs::floor("posix_spawn loop", "spawn")?
                .arg(&lines)
                .arg("cat"),
            Bar::rate(0.8, 0.95),
        ),
        (
            programs::installed("GNU parallel", "parallel", "install parallel")
                .args(["--will-cite", "--pipe", "-N1", "-k", "-j8", "cat"])
                .stdin(&lines),
            Bar::rate(8.0, 12.0),
        ),
        (
            programs::installed("xargs -P8", "xargs", "install findutils")
                .args(["-P8", "-n1", "cat"])
                .stdin(one_file_each(bench)?),
            Bar::rate(0.9, 1.1),
        ),
        (
            programs::python("Python asyncio", "commands.py", "fastjsonschema").arg(&response),
            Bar::rate(2.0, 2.5),
        ),
        (
            programs::node("node + ajv", "commands.cjs", "ajv").arg(&response),
            Bar::rate(2.2, 3.0),
        ),
    ];
    let rivals = rivals
        .into_iter()
        .map(|(contestant, bar)| Ok(Rival::new(contestant.prints(inputs::PROOF, CALLS)?, bar)))
        .collect::<Result<Vec<_>>>()?;
    let ours = programs::toolq_run(bench, 8, &response).prints(inputs::PROOF, CALLS)?;
    race(
        "1,000 `cat` calls, 8 at a time",
        bench.rounds,
        &ours,
        &rivals,
    )
}

/// A list of files with an input each: xargs hands out arguments, it writes to nobody's stdin.
fn one_file_each(bench: &Workbench) -> Result<PathBuf> {
    fs::create_dir(bench.path("cats"))?;
    for number in 0..CALLS {
        fs::write(
            bench.path("cats").join(number.to_string()),
            inputs::input(number),
        )?;
    }
    bench.file("cats.list", |out| {
        (0..CALLS).try_for_each(|number| {
            writeln!(
                out,
                "{}",
                bench.path("cats").join(number.to_string()).display()
            )
        })
    })
}
