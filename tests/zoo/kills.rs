//! FAULTS 64, 135: toolq is killed with -9 at any moment, as when memory runs out, and nobody is left.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::number;
use crate::tracks::{self, MARK};

/// The longest that toolq may live before it is killed, in ms.
const LIFE: u64 = 400;

/// Kills toolq; how often.
pub fn all() -> usize {
    let times = number("ZOO_KILLS", 15);
    let mut longest = Duration::ZERO;
    for time in 0..times {
        longest = longest.max(one(time));
    }
    println!(
        "nobody was left {} ms after a kill, at the latest",
        longest.as_millis()
    );
    times
}

fn one(time: usize) -> Duration {
    let folder = tempfile::tempdir().unwrap();
    let itself = std::env::current_exe().unwrap();
    let mark = format!("kill-{}-{time}", std::process::id());
    // Also where a keeper was stopped, and can't do its part.
    let beast = if time % 4 == 3 {
        "stops_its_parent"
    } else {
        "tree"
    };
    let tools = format!(
        "version: 1\ntools:\n  tree:\n    description: A tree.\n    input_schema: {{type: object}}\n    \
         concurrency_safe: true\n    command: {{argv: [\"{}\", beast, {beast}, \"{mark}\"], env: {{{MARK}: \"{mark}\"}}}}\n",
        itself.display()
    );
    fs::write(folder.path().join("tools.yaml"), tools).unwrap();
    let call =
        |at: usize| format!(r#"{{"type":"tool_use","id":"t{at}","name":"tree","input":{{}}}}"#);
    let calls: Vec<String> = (0..4).map(call).collect();
    let mut killed = Command::new(env!("CARGO_BIN_EXE_toolq"))
        .args(["run", "--no-log", "-q"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    write!(killed.stdin.take().unwrap(), "[{}]", calls.join(",")).unwrap();
    // The moment is the point here: none is waited for.
    std::thread::sleep(Duration::from_millis(fastrand::u64(0..LIFE)));
    killed.kill().unwrap();
    killed.wait().unwrap();
    tracks::wait_until_gone(&mark, "a killed toolq")
}
