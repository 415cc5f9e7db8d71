//! Calls with side effects, one at a time: the cost of a log and of claims that survive power loss.

use std::fs;
use std::os::unix::fs::symlink;

use crate::bar::PerformanceBar;
use crate::bench_context::BenchContext;
use crate::bench_program::BenchProgram;
use crate::comparison::{Baseline, ComparisonLine, compare_rounds};
use crate::{Result, inputs, programs};

const CALLS: usize = 200;
const MANY_CALLS: usize = 1_000;
/// How many calls of other runs the memory has.
const CLAIMS: u128 = 100_000;

/// Versus two fsyncs per call.
pub fn synced_cats(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    compare_with_syncs(bench, "200 durable write calls, one at a time", CALLS)
}

/// The thousandth call of a run must not cost more than the first.
pub fn many_synced_cats(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    compare_with_syncs(bench, "1,000 durable write calls in one run", MANY_CALLS)
}

fn compare_with_syncs(
    bench: &BenchContext,
    work: &'static str,
    calls: usize,
) -> Result<Vec<ComparisonLine>> {
    let response = bench.write_file("kept.json", |out| {
        inputs::write_response(out, "keep_note", calls)
    })?;
    let lines = bench.write_file("kept.jsonl", |out| inputs::write_inputs(out, calls))?;
    let synced = programs::floor("posix_spawn loop, two fsyncs each", "spawn")?
        .args(["--jobs", "1", "--synced"])
        .arg(bench.path("synced"))
        .arg(&lines)
        .arg("cat");
    let ours =
        programs::toolq_run(bench, 8, &response).expect_output(inputs::OUTPUT_MARKER, calls)?;
    let synced = synced.expect_output(inputs::OUTPUT_MARKER, calls)?;
    compare_rounds(
        work,
        bench.rounds,
        &ours,
        &[Baseline::new(synced, PerformanceBar::time(1.25))],
    )
}

/// What other runs did must not cost a run anything.
pub fn beside_many_claims(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let response = bench.write_file("claimed.json", |out| {
        inputs::write_response(out, "keep_note", CALLS)
    })?;
    let claims = bench.path("full/toolq/claims");
    fs::create_dir_all(&claims)?;
    for number in 0..CLAIMS {
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let claim = claims.join(format!("{key:032x}.1~1"));
        if !claim.is_symlink() {
            symlink("v1", claim)?;
        }
    }
    let remembering = |name, state: &str| -> Result<BenchProgram> {
        programs::toolq()
            .named(name)
            .env("XDG_STATE_HOME", bench.path(state))
            .args(["run", "--new", "-j", "8"])
            .arg(&response)
            .expect_output(inputs::OUTPUT_MARKER, CALLS)
    };
    let empty = remembering("toolq, beside none", "empty")?;
    compare_rounds(
        "200 durable write calls beside 100,000 claims of other runs",
        bench.rounds,
        &remembering("toolq", "full")?,
        &[Baseline::new(empty, PerformanceBar::time(1.10))],
    )
}
