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

/// The MCP server that another kind of calls has.
const SERVER: &str = "leaves_children_and_ignores_term";

/// How often toolq is killed: at least once with each kind of calls.
const KILLS: usize = if cfg!(feature = "slow-tests") { 18 } else { 6 };

/// Runs and kills toolq repeatedly.
pub fn kill_repeatedly() {
    (0..KILLS).for_each(kill_once);
}

/// Kills one run of toolq, and waits until all its descendants are gone.
fn kill_once(number: usize) {
    let temp_dir = tempfile::tempdir().unwrap();
    let mark = format!("kill-{}-{number}", std::process::id());
    let tools = tools_file(PROGRAMS.get(number % (PROGRAMS.len() + 1)), &mark);
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

/// Returns a file whose tool runs a program, or calls the server.
fn tools_file(program: Option<&&str>, mark: &str) -> String {
    let (role, name) = program.map_or(("server", SERVER), |name| ("program", name));
    let command = format!(
        "{{argv: [\"{}\", {PLAY}, {role}, {name}, \"{mark}\"], env: {{{MARK_VARIABLE}: \"{mark}\"}}}}",
        std::env::current_exe().unwrap().display()
    );
    let (servers, backing) = match program {
        Some(_) => (String::new(), format!("command: {command}")),
        None => (
            format!("servers:\n  s:\n    command: {command}\n"),
            "mcp: {server: s, tool: act}".to_owned(),
        ),
    };
    format!(
        "version: 1\n{servers}tools:\n  tree:\n    description: A tree.\n    input_schema: {{type: object}}\n    \
         concurrency_safe: true\n    timeout: {{after: 60s, grace: 100ms}}\n    {backing}\n"
    )
}
