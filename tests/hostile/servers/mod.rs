//! Hostile MCP servers: regardless of what a server does, each call gets one answer in time, no effect happens twice, and no
//! process of the server survives.
//!
//! Those in [`programs`] are played by this binary; those in [`endpoints`] are reached over HTTP and are threads of this
//! process. Each runs with a toolq of its own.

mod endpoints;
mod expectation;
mod http_wire;
pub mod programs;
mod script;
mod wire;

use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;
use std::{fs, thread};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::process_marks::{self, MARK_VARIABLE};
use crate::servers::expectation::{End, Settings};
use crate::servers::http_wire::start_endpoint;
use crate::servers::script::{Behavior, HostileServer};
use crate::stall_clock::ActiveSpan;
use crate::{PLAY, beside_others, choose};

/// The timeout of calls that are expected to end by it.
const SHORT_TIMEOUT: Duration = Duration::from_millis(600);
/// How much later than its timeout a call may get its result, without stalls of the machine.
const MAX_DELAY: Duration = Duration::from_secs(2);
/// The timeout of all other calls. Far more than they need: some servers send 75 MB to a debug build, on a machine that may be
/// busy otherwise.
const LONG_TIMEOUT: &str = "100s";
/// How long toolq may take for everything. Far more than it needs.
const DEADLINE: Duration = Duration::from_mins(5);
/// How large the results and the log may be, regardless of what a server sends.
const MAX_OUTPUT_BYTES: u64 = 2 << 20;

/// Each kind of harm once, over both transports.
const FEW: [&str; 13] = [
    "never_reads",
    "leaves_children_and_ignores_term",
    "writes_500_000_lines_of_noise",
    "dies_with_a_long_farewell",
    "never_answers",
    "answers_twice_and_differently",
    "sends_unknown_contents",
    "repeats_a_key_of_the_result",
    "lists_a_name_twice",
    "breaks_off_again_and_again",
    "ends_the_connection_in_the_body",
    "ends_the_connection_in_the_legacy_era",
    "responds_without_end",
];

/// Returns a trial for each chosen server. Those that take long come first.
pub fn trials() -> Vec<Trial> {
    let all = programs::all().chain(endpoints::all());
    choose(all, |server| server.name, &FEW)
        .into_iter()
        .map(|server| {
            Trial::test(format!("servers::{}", server.name), move || {
                beside_others(|| check_server(&server));
                Ok(())
            })
        })
        .collect()
}

/// What came of a run.
struct RunOutput {
    stdout: String,
    stderr: String,
    peak_bytes: u64,
}

fn check_server(server: &HostileServer) {
    let name = server.name;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mark = format!("{name}-{}", std::process::id());
    fs::write(dir.join("tools.yaml"), tools_file(server, dir, &mark)).unwrap();
    if server.settings.is_locked {
        let output = run_toolq(dir, &["servers", "lock"], "", name);
        assert!(dir.join("tools.lock").exists(), "{name}: {}", output.stderr);
        assert!(output.stderr.len() < 1 << 16, "{name}: too much on stderr");
    }
    let jobs = if server.settings.is_parallel {
        "4"
    } else {
        "1"
    };
    // Servers report progress only if something consumes it, as `--events` does.
    let arguments = [
        "run",
        "-q",
        "-j",
        jobs,
        "--log",
        "log.jsonl",
        "--events",
        "events.jsonl",
    ];
    let span = ActiveSpan::begin();
    let output = run_toolq(dir, &arguments, &message(), name);
    let stalled = span.stalled_time();
    process_marks::wait_until_gone(&mark, name);
    let results = read_results(&output, name);
    let ends = server.ends.in_order();
    for (position, (end, result)) in ends.iter().zip(&results).enumerate() {
        check_result(name, position, *end, result);
    }
    check_effects(server, dir);
    check_log(server, dir, stalled);
    if let Some(limit) = server.settings.memory_limit {
        let peak = output.peak_bytes;
        assert!(peak < limit, "{name}: toolq needed {} MiB", peak >> 20);
    }
    if matches!(server.ends.pay, End::InDoubt(_)) {
        // Nor does a person's next attempt.
        let arguments = ["run", "-q", "--log", "log.jsonl"];
        let resumed = run_toolq(dir, &arguments, &message(), name);
        check_result(name, 3, server.ends.pay, &read_results(&resumed, name)[3]);
        check_effects(server, dir);
        process_marks::wait_until_gone(&mark, name);
    }
}

fn tools_file(server: &HostileServer, dir: &Path, mark: &str) -> String {
    let Settings {
        keys, is_impatient, ..
    } = server.settings;
    let reached_by = match server.behavior {
        Behavior::Program(_) => {
            let binary = std::env::current_exe().unwrap();
            format!(
                "command: {{argv: [\"{}\", {PLAY}, server, {}], env: {{{MARK_VARIABLE}: \"{mark}\"}}}}",
                binary.display(),
                server.name
            )
        }
        Behavior::Endpoint(script) => format!("url: \"{}\"", start_endpoint(script, dir)),
    };
    let short = if is_impatient { "600ms" } else { LONG_TIMEOUT };
    let last = if matches!(server.ends.again, End::TimesOut) {
        "600ms"
    } else {
        LONG_TIMEOUT
    };
    let tool = |name: &str, effect: &str, timeout: &str, called: &str| {
        format!(
            "  {name}: {{input_schema: {{type: object}}, effect: {effect}, on_doubt: continue, timeout: {timeout}, mcp: {{server: s, tool: {called}}}}}\n"
        )
    };
    let tools = [
        tool("hello", "read", LONG_TIMEOUT, "hello"),
        tool("look", "read", short, "act"),
        tool("pay", "write", short, "act"),
        tool("again", "read", last, "hello"),
    ];
    format!(
        "version: 1\nservers:\n  s:\n    {reached_by}\n    {keys}\ntools:\n{}",
        tools.concat()
    )
}

fn message() -> String {
    let calls = ["hello", "look", "look", "pay", "again"].iter().zip(0..);
    let blocks = calls.map(|(tool, n)| {
        let input = json!({"n": n, "pays": *tool == "pay"});
        json!({"type": "tool_use", "id": format!("c{n}"), "name": tool, "input": input})
    });
    json!({"role": "assistant", "content": blocks.collect::<Value>()}).to_string()
}

fn run_toolq(dir: &Path, arguments: &[&str], input: &str, name: &str) -> RunOutput {
    fs::write(dir.join("in.json"), input).unwrap();
    let open = |file: &str| fs::File::create(dir.join(file)).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_toolq"))
        .args(arguments)
        .current_dir(dir)
        .env("HOME", dir)
        .env("XDG_STATE_HOME", dir.join("state"))
        .stdin(fs::File::open(dir.join("in.json")).unwrap())
        .stdout(open("stdout"))
        .stderr(open("stderr"))
        .spawn()
        .unwrap();
    let peak_bytes = wait_for_end(child, name);
    let read = |file: &str| {
        let bytes = fs::read(dir.join(file)).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    RunOutput {
        stdout: read("stdout"),
        stderr: read("stderr"),
        peak_bytes,
    }
}

/// Waits until toolq has ended. Returns how much memory it needed, as far as it could be seen.
fn wait_for_end(mut toolq: Child, name: &str) -> u64 {
    let status = format!("/proc/{}/status", toolq.id());
    let span = ActiveSpan::begin();
    let mut peak = 0;
    while toolq.try_wait().unwrap().is_none() {
        if span.active_time() > DEADLINE {
            toolq.kill().unwrap();
            toolq.wait().unwrap();
            panic!("{name}: toolq didn't end");
        }
        let status = fs::read_to_string(&status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(kibibytes.unwrap_or(0_u64) << 10);
        thread::sleep(Duration::from_millis(5));
    }
    peak
}

/// Returns the text of each result, and whether it is an error.
fn read_results(output: &RunOutput, name: &str) -> Vec<(String, bool)> {
    assert!(
        output.stdout.len() as u64 <= MAX_OUTPUT_BYTES,
        "{name}: too much on stdout"
    );
    let message: Value = serde_json::from_str(&output.stdout)
        .unwrap_or_else(|error| panic!("{name}: {error}\n{}", output.stderr));
    let results = message["content"].as_array().unwrap();
    let ids: Vec<&str> = results
        .iter()
        .map(|result| result["tool_use_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["c0", "c1", "c2", "c3", "c4"], "{name}");
    let read = |result: &Value| {
        let text = result["content"]
            .as_str()
            .map_or_else(|| result["content"].to_string(), str::to_owned);
        (text, result["is_error"] == true)
    };
    results.iter().map(read).collect()
}

fn check_result(name: &str, position: usize, end: End, result: &(String, bool)) {
    let shown: String = result.0.chars().take(500).collect();
    assert!(
        ends_so(position, end, result),
        "{name}: call {position} ended with {shown:?} instead of {end:?}"
    );
}

fn ends_so(position: usize, end: End, result: &(String, bool)) -> bool {
    let (text, is_error) = result;
    let is_in_doubt = text.starts_with("In doubt");
    match end {
        End::Served => *text == format!("done {position}") && !is_error,
        End::Says(part) => text.contains(part) && !is_error,
        End::Fails(part) => {
            // An earlier call got the reason why the server ended. This one may come just after that, before anything was
            // sent.
            let is_late = position > 0 && text.contains("the server ended before it got the call");
            // On a busy machine, a start may fail before the first call comes. Then this is the one that is too many.
            let is_refused = position == 3 && text.contains("isn't started again");
            (text.contains(part) || is_late || is_refused) && *is_error && !is_in_doubt
        }
        End::TimesOut => text.contains("timed out after 600ms") && *is_error,
        End::InDoubt(part) => text.contains(part) && *is_error && is_in_doubt,
        End::OneOf(ends) => ends.iter().any(|end| ends_so(position, *end, result)),
    }
}

/// A call that was answered had its effect, and no effect happened twice.
fn check_effects(server: &HostileServer, dir: &Path) {
    let effects = fs::read_to_string(dir.join("effects")).unwrap_or_default();
    let is_certain = matches!(server.ends.pay, End::Served | End::Says(_));
    let count = effects.lines().count();
    assert!(
        count <= 1 && (count == 1 || !is_certain),
        "{}: {effects:?}",
        server.name
    );
}

fn check_log(server: &HostileServer, dir: &Path, stalled: Duration) {
    let name = server.name;
    let log = fs::read_to_string(dir.join("log.jsonl")).unwrap();
    assert!(
        log.len() as u64 <= MAX_OUTPUT_BYTES,
        "{name}: the log has {} bytes",
        log.len()
    );
    let records = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let results: Vec<Value> = records
        .filter(|record| {
            matches!(
                record["type"].as_str(),
                Some("tool_result" | "tool_in_doubt")
            )
        })
        .collect();
    assert_eq!(results.len(), 5, "{name}");
    if server.settings.is_impatient {
        for result in &results[1..4] {
            let took = Duration::from_millis(result["metadata"]["duration_ms"].as_u64().unwrap());
            let limit = SHORT_TIMEOUT + MAX_DELAY + stalled;
            assert!(took < limit, "{name}: a call took {took:?}");
        }
    }
}
