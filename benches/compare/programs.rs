//! The programs to compare: toolq itself, floors, scripts, and installed programs.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::bench_context::BenchContext;
use crate::bench_program::BenchProgram;

const REPOSITORY_DIR: &str = env!("CARGO_MANIFEST_DIR");
/// How to install the programs that only `benches/setup` installs.
pub const SETUP_HINT: &str = "run benches/setup";

/// Returns toolq, with the tools of the benchmarks.
pub fn toolq() -> BenchProgram {
    BenchProgram::new("toolq", env!("CARGO_BIN_EXE_toolq"))
        .env("TOOLQ_TOOLS", benches_path("tools.yaml"))
}

/// Returns `toolq run` with everything on but events, and its log next to the input.
pub fn toolq_run(bench: &BenchContext, jobs: usize, input: &Path) -> BenchProgram {
    let log = bench.path("session.jsonl");
    toolq()
        .args(["run", "-j"])
        .arg(jobs.to_string())
        .arg("--log")
        .arg(&log)
        .arg(input)
        .log(log)
}

/// Returns `toolq plan --format json`, with an empty memory instead of that of whoever runs the benchmark.
pub fn toolq_plan(input: &Path) -> BenchProgram {
    toolq()
        .env("XDG_STATE_HOME", input.with_extension("state"))
        .args(["plan", "--format", "json"])
        .arg(input)
}

/// Returns a floor: this program in another role.
pub fn floor(name: &'static str, role: &str) -> Result<BenchProgram> {
    Ok(BenchProgram::new(name, std::env::current_exe()?).args(["floor", role]))
}

/// Returns a program that may be installed; `hint` says how to install it.
pub fn installed(name: &'static str, program: &str, hint: &'static str) -> BenchProgram {
    BenchProgram::new(name, program).require(["--version"], hint)
}

/// Returns a Python script in `benches/floors` that needs `module`.
pub fn python(name: &'static str, script: &str, module: &str) -> BenchProgram {
    BenchProgram::new(name, bench_env_path("bin/python"))
        .arg(benches_path("floors").join(script))
        .require(["-c", &format!("import {module}")], SETUP_HINT)
}

/// Returns the least that an MCP server can be, which `benches/setup` compiles.
pub fn mcp_floor_server() -> PathBuf {
    bench_env_path("mcp-server")
}

/// Returns the least that an MCP client can be, which `benches/setup` compiles.
pub fn mcp_floor_client() -> BenchProgram {
    BenchProgram::new("raw client", bench_env_path("mcp-client"))
}

/// Returns the path of a file in `benches`.
fn benches_path(name: &str) -> PathBuf {
    Path::new(REPOSITORY_DIR).join("benches").join(name)
}

/// Returns the path of a file that `benches/setup` created.
fn bench_env_path(name: &str) -> PathBuf {
    Path::new(REPOSITORY_DIR)
        .join("target/bench-env")
        .join(name)
}
