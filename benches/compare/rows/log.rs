//! `log stats` and `log verify` of 100,000 records, in memory that doesn't grow with the results.

use std::io::{self, Write};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::Result;
use crate::bar::PerformanceBar;
use crate::bench_context::BenchContext;
use crate::comparison::{Baseline, ComparisonLine, compare_rounds};
use crate::log_builder::LogBuilder;
use crate::programs;

/// Each call has three records.
const CALLS: u64 = 33_332;
const TOOLS: [&str; 3] = ["read_file", "search_text", "write_file"];

pub fn many_records(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let short = write_log(bench, "short.jsonl", 20)?;
    let long = write_log(bench, "long.jsonl", 4_000)?;
    let rows = [
        ("100,000 records through `log stats`", "stats", &short, 64.0),
        ("the same, with 4 KB results", "stats", &long, 64.0),
        (
            "100,000 records through `log verify`",
            "verify",
            &short,
            64.0,
        ),
    ];
    let mut lines = Vec::new();
    for (title, verb, log, memory) in rows {
        let ours = programs::toolq().args(["log", verb]).arg(log);
        let (text, times) = match verb {
            "stats" => ("_", 3),
            _ => (": ok: 100000 records", 1),
        };
        let ours = ours.expect_output(text, times)?;
        let baselines = [
            Baseline::absolute(PerformanceBar::own_time(500.0)),
            Baseline::absolute(PerformanceBar::memory(memory)),
        ];
        lines.extend(compare_rounds(title, bench.rounds, &ours, &baselines)?);
    }
    Ok(lines)
}

/// Writes a log whose results have `bytes` bytes. It's written in pieces to keep this process small, since its memory
/// would count toward that of its children.
fn write_log(bench: &BenchContext, name: &str, bytes: usize) -> Result<PathBuf> {
    bench.write_file(name, |out| write_records(out, &json!("x".repeat(bytes))))
}

fn write_records(out: &mut impl Write, result: &Value) -> io::Result<()> {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    for (number, tool) in (0..CALLS).zip(TOOLS.iter().cycle()) {
        let call = log.call(turn, tool, &json!({"path": "src/main.rs", "line": number}));
        log.start(call, tool, 1);
        log.result(call, tool, number % 100, result);
        out.write_all(log.take_text().as_bytes())?;
    }
    log.session_end(session);
    // With these two, and those of the session and its turn, the log has 100,000 records.
    log.session();
    out.write_all(log.take_text().as_bytes())
}
