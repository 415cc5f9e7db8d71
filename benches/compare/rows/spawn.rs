//! 1,000 `cat` calls, 8 at a time: the cost of validation, ordering, and logging on top of starting the programs.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use crate::Result;
use crate::bar::PerformanceBar;
use crate::bench_context::BenchContext;
use crate::comparison::{Baseline, ComparisonLine, compare_rounds};
use crate::inputs;
use crate::programs;

const CALLS: usize = 1_000;

pub fn thousand_cats(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let response = bench.write_file("cats.json", |out| {
        inputs::write_response(out, "read_note", CALLS)
    })?;
    let lines = bench.write_file("cats.jsonl", |out| inputs::write_inputs(out, CALLS))?;

    let programs_and_bars = [
        (
            programs::floor("posix_spawn loop", "spawn")?
                .arg(&lines)
                .arg("cat"),
            PerformanceBar::rate(0.8, 0.95),
        ),
        (
            programs::installed("GNU parallel", "parallel", "install parallel")
                .args(["--will-cite", "--pipe", "-N1", "-k", "-j8", "cat"])
                .stdin(&lines),
            PerformanceBar::rate(8.0, 12.0),
        ),
        (
            programs::installed("xargs -P8", "xargs", "install findutils")
                .args(["-P8", "-n1", "cat"])
                .stdin(one_file_each(bench)?),
            PerformanceBar::rate(0.9, 1.1),
        ),
        (
            programs::python("Python asyncio", "commands.py", "fastjsonschema").arg(&response),
            PerformanceBar::rate(2.0, 2.5),
        ),
        (
            programs::node("node + ajv", "commands.cjs", "ajv").arg(&response),
            PerformanceBar::rate(2.2, 3.0),
        ),
    ];
    let baselines = programs_and_bars
        .into_iter()
        .map(|(program, bar)| {
            Ok(Baseline::new(
                program.expect_output(inputs::OUTPUT_MARKER, CALLS)?,
                bar,
            ))
        })
        .collect::<Result<Vec<_>>>()?;
    let ours =
        programs::toolq_run(bench, 8, &response).expect_output(inputs::OUTPUT_MARKER, CALLS)?;
    compare_rounds(
        "1,000 `cat` calls, 8 at a time",
        bench.rounds,
        &ours,
        &baselines,
    )
}

pub fn thousand_confined_cats(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let run = |tool: &str| {
        let response = bench.write_file(&format!("{tool}.json"), |out| {
            inputs::write_response(out, tool, CALLS)
        })?;
        programs::toolq_run(bench, 8, &response).expect_output(inputs::OUTPUT_MARKER, CALLS)
    };
    let ours = run("read_note_confined")?;
    let mut unconfined = run("read_note")?;
    unconfined.name = "toolq without `sandbox`";
    let baseline = Baseline::new(unconfined, PerformanceBar::time(1.15));
    compare_rounds(
        "1,000 `cat` calls in a sandbox, 8 at a time",
        bench.rounds,
        &ours,
        &[baseline],
    )
}

/// Writes a list of files with one input each: xargs passes arguments and can't write to stdin.
fn one_file_each(bench: &BenchContext) -> Result<PathBuf> {
    fs::create_dir(bench.path("cats"))?;
    for number in 0..CALLS {
        fs::write(
            bench.path("cats").join(number.to_string()),
            inputs::call_input(number),
        )?;
    }
    bench.write_file("cats.list", |out| {
        (0..CALLS).try_for_each(|number| {
            writeln!(
                out,
                "{}",
                bench.path("cats").join(number.to_string()).display()
            )
        })
    })
}
