//! `toolq serve`: how soon it answers after its start, and what its protocol adds to the calls of commands.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::time::Instant;

use crate::Result;
use crate::bar::PerformanceBar;
use crate::bench_context::BenchContext;
use crate::bench_program::BenchProgram;
use crate::comparison::{Baseline, ComparisonLine, compare_rounds, median};
use crate::inputs;
use crate::locked_servers::LockedServers;
use crate::programs;

const CALLS: usize = 1_000;
const JOBS: &str = "16";
const SERVERS: usize = 6;
/// A round takes only milliseconds, so there are more of them.
const ROUNDS_FACTOR: usize = 10;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;

/// From the start of the process to its first answer, where the first request may be any of three.
pub fn first_answers(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let commands = || serve(bench, programs::toolq());
    let servers = LockedServers::create(bench, "served", SERVERS, &[])?;
    servers.forbid_starts()?;
    let discover = modern_request("server/discover");
    let list = modern_request("tools/list");
    let works = [
        (
            "`serve` until it answers `initialize`",
            commands(),
            INITIALIZE,
        ),
        (
            "`serve` until it answers `server/discover`",
            commands(),
            &*discover,
        ),
        (
            "`serve` until it lists the locked tools of 6 servers",
            serve(bench, servers.toolq()),
            &*list,
        ),
    ];
    let lines = works.into_iter().map(|(work, program, request)| {
        let rounds = bench.rounds * ROUNDS_FACTOR;
        let times = (0..rounds).map(|_| first_answer_ms(bench, &program, request));
        let times = times.collect::<Result<Vec<f64>>>()?;
        let bar = PerformanceBar::own_time(10.0);
        Ok(ComparisonLine::measured(
            work,
            bar,
            median(times.into_iter()),
        ))
    });
    let lines = lines.collect();
    servers.check_not_started()?;
    lines
}

/// The same calls as in a message for `toolq run`.
pub fn command_calls(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let response = bench.write_file("cats.json", |out| {
        inputs::write_response(out, "read_note", CALLS)
    })?;
    let lines = bench.write_file("cats.jsonl", |out| inputs::write_inputs(out, CALLS))?;
    let log = bench.path("session.jsonl");
    let ours = programs::floor("toolq serve", "tool-client")?
        .env("TOOLQ_TOOLS", programs::tools_path())
        .args(["--in-flight", JOBS, "read_note"])
        .arg(lines)
        .args([
            env!("CARGO_BIN_EXE_toolq"),
            "serve",
            "-q",
            "-j",
            JOBS,
            "--log",
        ])
        .arg(&log)
        .log(log)
        .expect_output(inputs::OUTPUT_MARKER, CALLS)?;
    let mut run =
        programs::toolq_run(bench, 16, &response).expect_output(inputs::OUTPUT_MARKER, CALLS)?;
    run.name = "toolq run";
    compare_rounds(
        "1,000 `cat` calls through `serve`, 16 at a time",
        bench.rounds,
        &ours,
        &[Baseline::new(run, PerformanceBar::rate(0.9, 1.0))],
    )
}

/// Returns toolq as a server, with its log in the directory of the benchmarks.
fn serve(bench: &BenchContext, toolq: BenchProgram) -> BenchProgram {
    let log = bench.path("serve.jsonl");
    toolq.args(["serve", "-q", "--log"]).arg(log)
}

/// Returns a request that may come first, since it says its revision itself.
fn modern_request(method: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"bench","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

fn first_answer_ms(bench: &BenchContext, program: &BenchProgram, request: &str) -> Result<f64> {
    let log = bench.path("serve.jsonl");
    if log.exists() {
        fs::remove_file(log)?;
    }
    let mut command = program.command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let start = Instant::now();
    let mut server = command.spawn()?;
    let mut stdin = server.stdin.take().ok_or("the server has no stdin")?;
    let stdout = server.stdout.take().ok_or("the server has no stdout")?;
    writeln!(stdin, "{request}")?;
    let mut answer = String::new();
    // It stays open: a server whose client is gone fails.
    let mut stdout = BufReader::new(stdout);
    stdout.read_line(&mut answer)?;
    let elapsed = start.elapsed();
    drop(stdin);
    if !answer.contains(r#""result""#) || !server.wait()?.success() {
        return Err(format!("the server failed: {answer}").into());
    }
    Ok(elapsed.as_secs_f64() * 1e3)
}
