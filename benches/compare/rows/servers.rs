//! What several MCP servers, their lock, and a server without measure cost.

use crate::Result;
use crate::bar::PerformanceBar;
use crate::bench_context::BenchContext;
use crate::bench_program::BenchProgram;
use crate::comparison::{Baseline, ComparisonLine, compare_rounds};
use crate::inputs;
use crate::locked_servers::{LockedServers, tool_name};

const SERVERS: usize = 6;
/// How long each server takes to start.
const START_DELAY_MS: &str = "500";
/// Rounds of the rows that take only milliseconds.
const ROUNDS_FACTOR: usize = 10;

pub fn six_starts(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let run = |servers: usize| -> Result<BenchProgram> {
        let name = format!("slow-{servers}");
        let locked = LockedServers::create(bench, &name, servers, &["--delay", START_DELAY_MS])?;
        let program = run_calls(bench, &locked, servers)?;
        program.expect_output(inputs::OUTPUT_MARKER, servers)
    };
    let mut one = run(1)?;
    one.name = "one of them";
    compare_rounds(
        "a call of each of 6 MCP servers that take 500 ms to start",
        bench.rounds,
        &run(SERVERS)?,
        &[
            Baseline::new(one, PerformanceBar::time(1.1)),
            Baseline::absolute(PerformanceBar::own_time(750.0)),
        ],
    )
}

pub fn long_line(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let locked = LockedServers::create(bench, "long", 1, &["--long-result", "300"])?;
    let ours = run_calls(bench, &locked, 1)?.expect_output("300000", 1)?;
    compare_rounds(
        "an MCP server that answers with a line of 300 MB",
        bench.rounds,
        &ours,
        &[Baseline::absolute(PerformanceBar::memory(100.0))],
    )
}

pub fn locked_tools(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let servers = LockedServers::create(bench, "six", SERVERS, &[])?;
    servers.forbid_starts()?;
    let response = bench.write_file("one.json", |out| {
        inputs::write_response(out, &tool_name(0), 1)
    })?;
    let plan = servers.toolq().args(["plan", "--format", "json"]);
    let programs = [
        (
            "`check` with a lock of 6 servers",
            servers.toolq().arg("check"),
        ),
        ("`plan` with a lock of 6 servers", plan.arg(response)),
        (
            "`tools` with a lock of 6 servers",
            servers.toolq().arg("tools"),
        ),
    ];
    let mut lines = Vec::new();
    for (work, ours) in programs {
        let rounds = bench.rounds * ROUNDS_FACTOR;
        let bar = Baseline::absolute(PerformanceBar::own_time(10.0));
        lines.extend(compare_rounds(work, rounds, &ours, &[bar])?);
    }
    servers.check_not_started()?;
    Ok(lines)
}

/// Returns a run of one call of each server, at the same time.
fn run_calls(bench: &BenchContext, locked: &LockedServers, servers: usize) -> Result<BenchProgram> {
    let tools: Vec<String> = (0..servers).map(tool_name).collect();
    let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
    let response = bench.write_file(&format!("calls-{servers}.json"), |out| {
        inputs::write_response_of(out, &tools, servers, inputs::call_input)
    })?;
    let arguments = ["run", "--no-log"];
    Ok(locked.toolq().args(arguments).arg(response))
}
