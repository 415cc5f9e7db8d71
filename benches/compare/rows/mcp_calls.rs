//! Calls of tools of MCP servers over stdio, 16 at a time, against a client that does nothing else.

use std::ffi::OsString;
use std::path::Path;

use crate::bar::PerformanceBar;
use crate::bench_context::BenchContext;
use crate::bench_program::BenchProgram;
use crate::comparison::{Baseline, ComparisonLine, compare_if_installed, compare_rounds};
use crate::locked_server::{self, LockedServer};
use crate::{Result, inputs, programs};

/// Calls of a server that answers at once.
const FLOOR_CALLS: u32 = 50_000;
/// Calls of a real server. Its start must not decide the figure.
const REAL_CALLS: u32 = 20_000;
const IN_FLIGHT: &str = "16";

pub fn floor_server(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let server = programs::mcp_floor_server();
    let ours = toolq_echo(bench, &server, FLOOR_CALLS, "Echo: hi")?;
    let client = raw_client(&server, FLOOR_CALLS, programs::SETUP_HINT)?;
    let baselines = [
        Baseline::new(client, PerformanceBar::rate(0.07, 0.1)),
        Baseline::absolute(PerformanceBar::call_rate(FLOOR_CALLS, 20_000.0)),
    ];
    let work = "50,000 calls of an MCP server, 16 at a time, without a log";
    compare_if_installed(work, bench.rounds, &ours, &baselines)
}

pub fn real_server(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let server = bench
        .mcp_kit
        .join("servers/node_modules/.bin/mcp-server-everything");
    let ours = toolq_echo(bench, &server, REAL_CALLS, "Echo: Who wrote")?;
    let hint = "run benches/setup, and set MCP_KIT to a directory with mcp-server-everything";
    let client = raw_client(&server, REAL_CALLS, hint)?;
    let baselines = [Baseline::new(client, PerformanceBar::rate(0.75, 1.0))];
    let work = "20,000 calls of mcp-server-everything, 16 at a time, without a log";
    compare_if_installed(work, bench.rounds, &ours, &baselines)
}

pub fn locked_server(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let server = LockedServer::create(bench)?;
    let tool = locked_server::tool_name();
    let calls = FLOOR_CALLS as usize;
    let response = bench.write_file("locked.json", |out| {
        inputs::write_response(out, &tool, calls)
    })?;
    let log = bench.path("session.jsonl");
    let ours = server
        .toolq()
        .args(["run", "-j", IN_FLIGHT, "--log"])
        .arg(&log)
        .arg(&response)
        .log(log)
        .expect_output(inputs::OUTPUT_MARKER, calls)?;
    let mut unlogged = server
        .toolq()
        .args(["run", "-j", IN_FLIGHT, "--no-log"])
        .arg(&response)
        .expect_output(inputs::OUTPUT_MARKER, calls)?;
    unlogged.name = "toolq without a log";
    compare_rounds(
        "50,000 calls of a locked MCP tool, 16 at a time, with a log",
        bench.rounds,
        &ours,
        &[
            Baseline::new(unlogged, PerformanceBar::rate(0.5, 0.7)),
            Baseline::absolute(PerformanceBar::call_rate(FLOOR_CALLS, 10_000.0)),
        ],
    )
}

/// Returns toolq with `calls` calls of the tool `echo` of a server. `answer` appears in each result.
fn toolq_echo(
    bench: &BenchContext,
    server: &Path,
    calls: u32,
    answer: &str,
) -> Result<BenchProgram> {
    let command = serde_json::to_string(&[server])?;
    let tools = bench.write_file("echo.yaml", |out| write_echo_tool(out, &command))?;
    let calls = calls as usize;
    let response = bench.write_file("echo.json", |out| {
        inputs::write_response_of(out, &["echo"], calls, inputs::echo_input)
    })?;
    programs::toolq()
        .env("TOOLQ_TOOLS", tools)
        .args(["run", "-j", IN_FLIGHT, "--no-log"])
        .arg(response)
        .expect_output(answer, calls)
}

/// The revision is the one of the raw client; the floor server doesn't know which other it doesn't speak.
fn write_echo_tool(out: &mut impl std::io::Write, command: &str) -> std::io::Result<()> {
    writeln!(
        out,
        r#"version: 1
servers:
  bench:
    command: {command}
    protocol: "2025-11-25"
tools:
  echo:
    description: Return a message.
    input_schema:
      type: object
      properties: {{message: {{type: string, minLength: 1, maxLength: 2000}}}}
      required: [message]
      additionalProperties: false
    effect: read
    mcp: {{server: bench}}"#
    )
}

/// Returns the client that makes the same calls, and looks at nothing but their ids.
fn raw_client(server: &Path, calls: u32, hint: &'static str) -> Result<BenchProgram> {
    let arguments = |calls: u32| -> Vec<OsString> {
        let calls = calls.to_string();
        let input = inputs::echo_input(0);
        let mut arguments: Vec<OsString> = ["legacy", &calls, IN_FLIGHT, "echo", &input, "--"]
            .map(OsString::from)
            .into();
        arguments.push(server.into());
        arguments
    };
    programs::mcp_floor_client()
        .args(arguments(calls))
        .require(arguments(0), hint)
        .expect_output("calls/s", 1)
}
