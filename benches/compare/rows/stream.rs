//! How soon a call of a stream starts: from the end of its block, while the message goes on, to the first thing that its
//! command does. The same command started directly is the spawn, which is not toolq's.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::json;

use crate::Result;
use crate::bar::Bar;
use crate::programs;
use crate::race::{Found, Line, Medians, median};
use crate::workbench::Workbench;

/// A round is over in milliseconds, so there are more of them.
const MORE: usize = 30;
/// What the command does, of which `$1` is the pipe that it writes to.
const SCRIPT: &str = r#"echo > "$1""#;
/// Between two blocks a model has something to say.
const PAUSE: Duration = Duration::from_millis(5);

pub fn starts(bench: &Workbench) -> Result<Vec<Line>> {
    let path = bench.path("begun");
    mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR)?;
    // Open at both ends, so that it has no end.
    let mut begun = OpenOptions::new().read(true).write(true).open(&path)?;
    let rounds = bench.rounds * MORE;
    let ours = streamed(bench, &path, &mut begun, rounds)?;
    let theirs = spawned(&path, &mut begun, rounds)?;
    let bar = Bar::longer(2.0);
    let (ours, theirs) = (median(ours.into_iter()), median(theirs.into_iter()));
    Ok(vec![Line {
        work: "from a block's stop to its command's start",
        against: "spawn",
        bar,
        found: Found::Measured(Medians {
            ours,
            theirs: Some(theirs),
            figure: ours - theirs,
            processor: None,
        }),
    }])
}

/// In ms, of each call of one message.
fn streamed(bench: &Workbench, path: &Path, begun: &mut File, rounds: usize) -> Result<Vec<f64>> {
    let toolq = programs::toolq_run(bench, 8, Path::new("-"));
    let mut toolq = toolq
        .command()
        .arg("--quiet")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    let mut stdin = toolq.stdin.take().ok_or("toolq has no stdin")?;
    let mut say = |data: serde_json::Value| write!(stdin, "data: {data}\n\n");
    say(json!({"type": "message_start", "message": {"content": []}}))?;
    let mut took = Vec::with_capacity(rounds);
    // The first one warms up.
    for index in 0..=rounds {
        let call = json!({"type": "tool_use", "id": format!("toolu_{index}"), "name": "begin", "input": {}});
        say(json!({"type": "content_block_start", "index": index, "content_block": call}))?;
        let input = json!({"path": path}).to_string();
        let delta = json!({"type": "input_json_delta", "partial_json": input});
        say(json!({"type": "content_block_delta", "index": index, "delta": delta}))?;
        std::thread::sleep(PAUSE);
        let stop = json!({"type": "content_block_stop", "index": index});
        let since = Instant::now();
        say(stop)?;
        begun.read_exact(&mut [0])?;
        took.push(since.elapsed().as_secs_f64() * 1e3);
    }
    say(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}))?;
    say(json!({"type": "message_stop"}))?;
    drop(stdin);
    if !toolq.wait()?.success() {
        return Err("toolq failed".into());
    }
    Ok(took.split_off(1))
}

/// In ms, of each start.
fn spawned(path: &Path, begun: &mut File, rounds: usize) -> Result<Vec<f64>> {
    let mut took = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        std::thread::sleep(PAUSE);
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "--"]).arg(path);
        let since = Instant::now();
        let mut child = command.spawn()?;
        begun.read_exact(&mut [0])?;
        took.push(since.elapsed().as_secs_f64() * 1e3);
        child.wait()?;
    }
    Ok(took)
}
