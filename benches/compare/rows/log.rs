//! A session log of 100,000 records, read: its numbers and whether it is whole, in memory that doesn't grow with what
//! calls answered.

use std::io::{self, Write};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::Result;
use crate::bar::Bar;
use crate::forge::Forge;
use crate::programs;
use crate::race::{Line, Rival, race};
use crate::workbench::Workbench;

/// Three records each.
const CALLS: u64 = 33_332;
const TOOLS: [&str; 3] = ["read_file", "search_text", "write_file"];

pub fn many_records(bench: &Workbench) -> Result<Vec<Line>> {
    let short = log(bench, "short.jsonl", 20)?;
    let long = log(bench, "long.jsonl", 4_000)?;
    let rows = [
        ("100,000 records through `log stats`", "stats", &short, 64.0),
        ("the same, each result of 4 KB", "stats", &long, 64.0),
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
        let ours = ours.prints(text, times)?;
        let bars = [
            Rival::none(Bar::alone(500.0)),
            Rival::none(Bar::memory(memory)),
        ];
        lines.extend(race(title, bench.rounds, &ours, &bars)?);
    }
    Ok(lines)
}

/// A log whose results have so many bytes. It is written piece by piece: what this process holds, its children seem to.
fn log(bench: &Workbench, name: &str, bytes: usize) -> Result<PathBuf> {
    bench.file(name, |out| write(out, &json!("x".repeat(bytes))))
}

fn write(out: &mut impl Write, result: &Value) -> io::Result<()> {
    let mut log = Forge::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    for (number, tool) in (0..CALLS).zip(TOOLS.iter().cycle()) {
        let call = log.call(turn, tool, &json!({"path": "src/main.rs", "line": number}));
        log.start(call, tool, 1);
        log.result(call, tool, number % 100, result);
        out.write_all(log.take().as_bytes())?;
    }
    log.session_end(session);
    // The records of the session and its turn make it 100,000 with these two.
    log.session();
    out.write_all(log.take().as_bytes())
}
