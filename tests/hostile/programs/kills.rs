//! toolq is killed with SIGKILL at random moments, as the OOM killer does. No process of it may survive.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::PLAY;
use crate::process_marks::{self, MARK_VARIABLE};

/// How long toolq may run before it is killed, in milliseconds.
const MAX_LIFETIME_MS: u64 = 400;

/// What the calls run. All but the first stop what would clean up, or fork all the time.
const PROGRAMS: [&str; 5] = [
    "tree",
    "stops_its_parent",
    "stops_reaper_and_supervisor",
    "stops_cleanup",
    "relays",
];

/// How often toolq is killed.
const KILLS: usize = if cfg!(feature = "slow-tests") { 15 } else { 5 };

/// Runs and kills toolq repeatedly.
pub fn kill_repeatedly() {
    (0..KILLS).for_each(kill_once);
}

/// Kills one run of toolq, and waits until all its descendants are gone.
fn kill_once(number: usize) {
    let temp_dir = tempfile::tempdir().unwrap();
    let test_binary = std::env::current_exe().unwrap();
    let mark = format!("kill-{}-{number}", std::process::id());
    let program = PROGRAMS[number % PROGRAMS.len()];
    let tools = format!(
        "version: 1\ntools:\n  tree:\n    description: A tree.\n    input_schema: {{type: object}}\n    \
         concurrency_safe: true\n    timeout: {{after: 60s, grace: 100ms}}\n    command: {{argv: [\"{}\", {PLAY}, program, {program}, \"{mark}\"], env: {{{MARK_VARIABLE}: \"{mark}\"}}}}\n",
        test_binary.display()
    );
    fs::write(temp_dir.path().join("tools.yaml"), tools).unwrap();
    let call =
        |at: usize| format!(r#"{{"type":"tool_use","id":"t{at}","name":"tree","input":{{}}}}"#);
    let calls: Vec<String> = (0..4).map(call).collect();
    let mut toolq = Command::new(env!("CARGO_BIN_EXE_toolq"))
        .args(["run", "--no-log", "-q"])
        .current_dir(temp_dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    write!(toolq.stdin.take().unwrap(), "[{}]", calls.join(",")).unwrap();
    // A random moment is the point of this test, so it waits for no condition.
    std::thread::sleep(Duration::from_millis(fastrand::u64(0..MAX_LIFETIME_MS)));
    toolq.kill().unwrap();
    toolq.wait().unwrap();
    process_marks::wait_until_gone(&mark, "a killed toolq");
}
