//! The contestants by kind: toolq itself, floors, scripts, and programs that people have.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::contestant::Contestant;
use crate::workbench::Workbench;

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");
/// How to get what only `benches/setup` installs.
const SETUP: &str = "run benches/setup";

/// Toolq, with the tools of the benchmarks.
pub fn toolq() -> Contestant {
    Contestant::new("toolq", env!("CARGO_BIN_EXE_toolq"))
        .variable("TOOLQ_TOOLS", source("tools.yaml"))
}

/// Their file.
pub fn tools() -> PathBuf {
    source("tools.yaml")
}

/// `toolq run`, everything on but events, its log beside the input.
pub fn toolq_run(bench: &Workbench, jobs: usize, input: &Path) -> Contestant {
    let log = bench.path("session.jsonl");
    toolq()
        .args(["run", "-j"])
        .arg(jobs.to_string())
        .arg("--log")
        .arg(&log)
        .arg(input)
        .log(log)
}

/// `toolq plan --format json`.
pub fn toolq_plan(input: &Path) -> Contestant {
    toolq().args(["plan", "--format", "json"]).arg(input)
}

/// `toolq replay` that checks every call and runs none.
pub fn toolq_replay(recording: &Path) -> Contestant {
    toolq()
        .args(["replay", "--execute", "none", "--json", "-"])
        .arg(recording)
}

/// A floor: this program in another role.
pub fn floor(name: &'static str, role: &str) -> Result<Contestant> {
    Ok(Contestant::new(name, std::env::current_exe()?).args(["floor", role]))
}

/// A program that people have, or install as `cure` says.
pub fn installed(name: &'static str, program: &str, cure: &'static str) -> Contestant {
    Contestant::new(name, program).needs(["--version"], cure)
}

/// A script of `benches/floors` for Python, which needs `module`.
pub fn python(name: &'static str, script: &str, module: &str) -> Contestant {
    Contestant::new(name, environment("bin/python"))
        .arg(source("floors").join(script))
        .needs(["-c", &format!("import {module}")], SETUP)
}

/// A script of `benches/floors` for Node, which needs `module`.
pub fn node(name: &'static str, script: &str, module: &str) -> Contestant {
    Contestant::new(name, "node")
        .variable("NODE_PATH", environment("node_modules"))
        .arg(source("floors").join(script))
        .needs(["-e", &format!("require('{module}')")], SETUP)
}

/// A file of `benches`.
fn source(name: &str) -> PathBuf {
    Path::new(REPOSITORY).join("benches").join(name)
}

/// A file that `benches/setup` made.
fn environment(name: &str) -> PathBuf {
    Path::new(REPOSITORY).join("target/bench-env").join(name)
}
