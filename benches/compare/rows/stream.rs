//! How soon a call in a stream starts: the time from the end of its block, while the message continues, to the first
//! action of its command. The baseline is the same command, spawned directly.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::json;

use crate::Result;
use crate::bar::PerformanceBar;
use crate::bench_context::BenchContext;
use crate::comparison::{ComparisonLine, ComparisonOutcome, RoundMedians, median};
use crate::programs;

/// A round takes only milliseconds, so there are more of them.
const ROUNDS_FACTOR: usize = 30;
/// The command's script; `$1` is the pipe that it writes to.
const SCRIPT: &str = r#"echo > "$1""#;
/// A pause before the end of each block, as in a real stream.
const BLOCK_INTERVAL: Duration = Duration::from_millis(5);

pub fn call_starts(bench: &BenchContext) -> Result<Vec<ComparisonLine>> {
    let path = bench.path("started");
    mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR)?;
    // Open for writing, too, so that reads never hit the end of the pipe.
    let mut start_pipe = OpenOptions::new().read(true).write(true).open(&path)?;
    let rounds = bench.rounds * ROUNDS_FACTOR;
    let ours = stream_latencies_ms(bench, &path, &mut start_pipe, rounds)?;
    let theirs = spawn_latencies_ms(&path, &mut start_pipe, rounds)?;
    let bar = PerformanceBar::extra_time(2.0);
    let (ours, theirs) = (median(ours.into_iter()), median(theirs.into_iter()));
    Ok(vec![ComparisonLine {
        work: "from the end of a block to the start of its command",
        against: "spawn",
        bar,
        outcome: ComparisonOutcome::Measured(RoundMedians {
            ours,
            theirs: Some(theirs),
            figure: ours - theirs,
            cpu_ratio: None,
        }),
    }])
}

/// Returns the latency of each call of one message, in ms.
fn stream_latencies_ms(
    bench: &BenchContext,
    path: &Path,
    start_pipe: &mut File,
    rounds: usize,
) -> Result<Vec<f64>> {
    let toolq = programs::toolq_run(bench, 8, Path::new("-"));
    let mut toolq = toolq
        .command()
        .arg("--quiet")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    let mut stdin = toolq.stdin.take().ok_or("toolq has no stdin")?;
    let mut send = |data: serde_json::Value| write!(stdin, "data: {data}\n\n");
    send(json!({"type": "message_start", "message": {"content": []}}))?;
    let mut latencies = Vec::with_capacity(rounds);
    // The first call is the warm-up.
    for index in 0..=rounds {
        let call = json!({"type": "tool_use", "id": format!("toolu_{index}"), "name": "begin", "input": {}});
        send(json!({"type": "content_block_start", "index": index, "content_block": call}))?;
        let input = json!({"path": path}).to_string();
        let delta = json!({"type": "input_json_delta", "partial_json": input});
        send(json!({"type": "content_block_delta", "index": index, "delta": delta}))?;
        std::thread::sleep(BLOCK_INTERVAL);
        let stop = json!({"type": "content_block_stop", "index": index});
        let block_end = Instant::now();
        send(stop)?;
        start_pipe.read_exact(&mut [0])?;
        latencies.push(block_end.elapsed().as_secs_f64() * 1e3);
    }
    send(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}))?;
    send(json!({"type": "message_stop"}))?;
    drop(stdin);
    if !toolq.wait()?.success() {
        return Err("toolq failed".into());
    }
    Ok(latencies.split_off(1))
}

/// Returns the latency of each spawn, in ms.
fn spawn_latencies_ms(path: &Path, start_pipe: &mut File, rounds: usize) -> Result<Vec<f64>> {
    let mut latencies = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        std::thread::sleep(BLOCK_INTERVAL);
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "--"]).arg(path);
        let start = Instant::now();
        let mut child = command.spawn()?;
        start_pipe.read_exact(&mut [0])?;
        latencies.push(start.elapsed().as_secs_f64() * 1e3);
        child.wait()?;
    }
    Ok(latencies)
}
