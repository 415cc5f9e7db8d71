//! `max_parallel` and `rate`.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    CliOutput, CliSandbox, eprint_uncaptured, full_or_short, model_response, parse_json_lines,
};

const TOOLS: &str = r#"
version: 1
concurrency: 8
servers: {files: {command: ["false"], max_parallel: 1}}
defaults: {retry: {times: 0}}
rules: [{tools: "slow_*", max_parallel: 1}]
tools:
  often: {effect: read, input_schema: {type: object}, rate: 10/s, command: ["true"]}
  save: {effect: read, input_schema: {type: object}, rate: 60/m, max_parallel: 2, estimate: 3s, command: ["true"]}
  slow_one: {effect: read, input_schema: {type: object}, estimate: 3s, command: ["true"]}
  list: {effect: read, input_schema: {type: object}, mcp: {server: files}}
  stat: {effect: read, input_schema: {type: object}, mcp: {server: files}}
"#;

fn sandbox(tools: &[&str]) -> CliSandbox {
    let calls: Vec<(&str, Value)> = tools.iter().map(|tool| (*tool, json!({}))).collect();
    CliSandbox::new().tools(TOOLS).stdin(model_response(&calls))
}

fn run(tools: &[&str]) -> CliOutput {
    sandbox(tools)
        .run(&["run", "--events", "events"])
        .assert_exit(0)
}

/// Returns the times of all starts, in milliseconds.
fn start_times(output: &CliOutput) -> Vec<u64> {
    let records = output.log_records();
    let starts = records
        .iter()
        .filter(|record| record["type"] == "tool_start");
    starts
        .map(|start| start["timestamp"].as_u64().unwrap())
        .collect()
}

/// Returns what each event `tool_throttled` says.
fn throttled(output: &CliOutput) -> Vec<[String; 4]> {
    let events = parse_json_lines(&output.file("events").unwrap()).into_iter();
    let throttled = events.filter(|event| event["type"] == "tool_throttled");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let line = |event: Value| {
        [
            text(&event["tool_use_id"]),
            text(&event["limit"]),
            text(&event["limited_by"]),
            text(&event["state"]["state"]),
        ]
    };
    throttled.map(line).collect()
}

/// How many starts follow the first in [`a_rate_holds_in_real_time`], 100 ms apart.
const INTERVALS: usize = full_or_short(100, 10);
/// When the last of them starts at the latest: 2 % late, or 50 ms late in the short form, where one delay weighs more.
const LATEST_MS: u64 = (100 * INTERVALS + full_or_short(200, 50)) as u64;

/// In real time, no two starts are closer than the rate allows, and the rate holds. Only the
/// latter depends on how busy the machine is: it has several tries, and one in which a thread that only sleeps is late as well
/// proves nothing. In `toolq-engine`, a simulated clock shows both.
#[test]
fn a_rate_holds_in_real_time() {
    let (mut took, mut slept) = (Vec::new(), Vec::new());
    while took.last().is_none_or(|last| *last > LATEST_MS) && took.len() < 5 {
        let sleeper = thread::spawn(sleep_intervals);
        took.push(time_intervals());
        slept.push(sleeper.join().unwrap());
    }
    eprint_uncaptured(format_args!(
        "{INTERVALS} intervals of 100 ms took {took:?} ms, and as many sleeps {slept:?} ms"
    ));
    let was_busy = slept.iter().any(|slept| *slept > 101 * INTERVALS as u128);
    assert!(took.last() <= Some(&LATEST_MS) || was_busy, "{took:?}");
}

/// Returns how many milliseconds as many sleeps of 100 ms take.
fn sleep_intervals() -> u128 {
    let began = Instant::now();
    for _ in 0..INTERVALS {
        thread::sleep(Duration::from_millis(100));
    }
    began.elapsed().as_millis()
}

fn time_intervals() -> u64 {
    let output = run(&["often"; INTERVALS + 1]);
    let starts = start_times(&output);
    let gaps: Vec<u64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The log has milliseconds, so a gap may be rounded down.
    assert!(gaps.iter().all(|gap| *gap >= 97), "{gaps:?}");
    let records = output.log_records();
    let waited = |record: &&Value| record["metadata"]["waited_ms"].as_u64() > Some(0);
    assert_eq!(records.iter().filter(waited).count(), INTERVALS);
    let took = starts[INTERVALS] - starts[0];
    assert!(took >= 100 * INTERVALS as u64 - 10, "{took}");
    took
}

/// All tools of a server share its limits.
#[test]
fn servers_limit_all_their_tools() {
    let output = run(&["list", "stat"]);
    let by_server = ["toolu_1", "max_parallel", "server files", "wait"].map(str::to_owned);
    assert_eq!(throttled(&output), [by_server]);
}

/// A call that waits for calls before it isn't throttled.
#[test]
fn waiting_for_the_gate_is_told_from_waiting_for_a_turn() {
    let output = run(&["slow_one", "slow_one"]);
    let by_rule = ["toolu_1", "max_parallel", "slow_one", "wait"].map(str::to_owned);
    assert_eq!(throttled(&output), [by_rule]);
    let output = sandbox(&["slow_one", "slow_one"])
        .run(&["run", "-j", "1", "--progress", "plain"])
        .assert_exit(0);
    assert!(!output.stderr.contains("waits for its turn"));
    let output = sandbox(&["slow_one", "slow_one"])
        .run(&["run", "--progress", "plain"])
        .assert_exit(0);
    let line = "#1 slow_one: waits for its turn: max_parallel of slow_one\n";
    assert!(output.stderr.contains(line), "{}", output.stderr);
}

/// The plan estimates with the limits, and says which apply.
#[test]
fn the_plan_shows_limits_and_estimates_with_them() {
    let plan = |tools: &[&str], arguments: &[&str]| {
        let arguments = [&["plan"], arguments].concat();
        sandbox(tools).run(&arguments).assert_exit(0).stdout
    };
    let json = |tools: &[&str]| parse_json_lines(&plan(tools, &["--format", "json"])).remove(0);
    let planned = json(&["save"; 6]);
    // Two at once, and no two within a second.
    assert_eq!(planned["estimate"]["planned_ms"], 10_000);
    assert_eq!(
        planned["batches"][0]["calls"][0]["limits"],
        json!([{"of": "save", "max_parallel": 2, "rate": "60/m"}])
    );
    let planned = json(&["slow_one", "slow_one"]);
    assert_eq!(planned["estimate"]["planned_ms"], 6_000);
    let text = plan(&["save", "list"], &[]);
    for line in [
        "(by effect)\n",
        " at most 2 at once, 60/m\n",
        " server files: at most 1 at once\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}
