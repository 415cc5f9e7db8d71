//! `locks`: calls that touch different things run together, and those that touch the same in order.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{CliOutput, CliSandbox, model_response, parse_json_lines};

/// `edit` writes down when it starts and ends. With `until`, it waits for that file in between.
const TOOLS: &str = r#"
version: 1
concurrency: 8
defaults: {timeout: 20s}
tools:
  edit:
    input_schema: &edit
      type: object
      properties: {path: {type: string}, until: {type: string}}
      required: [path]
    locks: {write: ["file:{path}"]}
    estimate: 1s
    command: {argv: [sh, "-c", 'echo "start $F" >> order; touch "$F.on"; [ -z "$U" ] || while [ ! -e "$U" ]; do sleep 0.01; done; echo "end $F" >> order'], env: {F: "{path}", U: "{until?}"}}
  view:
    input_schema: *edit
    effect: read
    locks: {read: ["file:{path}"]}
    estimate: 1s
    command: {argv: [sh, "-c", 'echo "start view $F" >> order; echo "end view $F" >> order'], env: {F: "{path}"}}
  hold:
    input_schema: *edit
    locks: {write: ["file:{path}"]}
    command: [sh, "-c", 'while [ ! -L l ]; do sleep 0.01; done; sleep 0.5; echo end hold >> order']
  link:
    input_schema: {type: object}
    locks: {write: ["file:l"]}
    command: [ln, "-s", a, l]
  publish: {input_schema: {type: object}, estimate: 1s, command: [sh, "-c", 'echo publish >> order']}
  look: {input_schema: {type: object}, effect: read, estimate: 1s, command: [sh, "-c", 'echo look >> order']}
  fail:
    input_schema: *edit
    locks: {write: ["file:{path}"]}
    on_failure: stop
    command: ["false"]
"#;

fn sandbox(calls: &[(&str, Value)]) -> CliSandbox {
    CliSandbox::new().tools(TOOLS).stdin(model_response(calls))
}

fn edit(path: &str) -> (&'static str, Value) {
    ("edit", json!({"path": path}))
}

fn edit_until(path: &str, until: &str) -> (&'static str, Value) {
    ("edit", json!({"path": path, "until": until}))
}

fn order(output: &CliOutput) -> Vec<String> {
    let order = output.file("order").unwrap_or_default();
    order.lines().map(str::to_owned).collect()
}

fn position(lines: &[String], line: &str) -> usize {
    lines.iter().position(|other| other == line).unwrap()
}

/// Two edits wait for each other, which only calls that run together survive.
#[test]
fn edits_of_different_files_run_together_and_of_one_file_in_order() {
    let calls = [
        edit_until("a", "b.on"),
        edit_until("b", "a.on"),
        edit("d/../a"),
        ("view", json!({"path": "."})),
    ];
    let output = sandbox(&calls).run(&["run"]).assert_exit(0);
    assert!(output.result_texts().iter().all(|(_, is_error)| !is_error));
    let lines = order(&output);
    assert!(position(&lines, "end a") < position(&lines, "start d/../a"));
    assert_eq!(lines.last().unwrap(), "end view .");
    // With one job, nothing runs together.
    let output = sandbox(&[edit("a"), edit("b")])
        .run(&["run", "-j", "1"])
        .assert_exit(0);
    assert_eq!(order(&output), ["start a", "end a", "start b", "end b"]);
}

/// A call without locks that isn't safe runs alone; one that is safe waits for all before it that aren't.
#[test]
fn calls_without_locks_keep_their_order() {
    let calls = [
        edit("a"),
        ("publish", json!({})),
        edit("b"),
        ("look", json!({})),
    ];
    let output = sandbox(&calls).run(&["run"]).assert_exit(0);
    let expected = ["start a", "end a", "publish", "start b", "end b", "look"];
    assert_eq!(order(&output), expected);
}

#[test]
fn the_plan_draws_the_order_with_its_reasons() {
    let calls = [
        edit("src/a.rs"),
        edit("src/b.rs"),
        ("view", json!({"path": "src/a.rs"})),
        edit("src/a.rs"),
        ("look", json!({})),
        ("view", json!({"path": "src"})),
    ];
    let plan = sandbox(&calls)
        .run(&["plan", "--format", "json"])
        .assert_exit(0);
    let plan = parse_json_lines(&plan.stdout).remove(0);
    let batches = plan["batches"].as_array().unwrap().iter();
    let calls_of = |batch: &Value| batch["calls"].as_array().unwrap().clone();
    let planned: Vec<Value> = batches.clone().flat_map(calls_of).collect();
    let waits: Vec<&Value> = planned.iter().map(|call| &call["waits_for"]).collect();
    assert_eq!(
        waits,
        [
            &json!([]),
            &json!([]),
            &json!([0]),
            &json!([2]),
            &json!([1, 3]),
            &json!([1, 3])
        ]
    );
    assert_eq!(
        planned[0]["locks"],
        json!({"read": [], "write": ["file:src/a.rs"]})
    );
    let sizes: Vec<usize> = batches.map(|batch| calls_of(batch).len()).collect();
    assert_eq!(sizes, [2, 1, 1, 2]);
    assert_eq!(
        plan["estimate"],
        json!({"serial_ms": 6_000, "planned_ms": 4_000, "unknown": 0})
    );
    let text = sandbox(&calls).run(&["plan"]).assert_exit(0).stdout;
    for reason in [
        "waits for call 0: writes src/a.rs\n",
        "waits for call 2: reads src/a.rs\n",
        "waits for call 1: writes src/b.rs, call 3: writes src/a.rs\n",
        "waits for call 1, call 3\n",
    ] {
        assert!(text.contains(reason), "{reason}{text}");
    }
    let without = sandbox(&[("look", json!({}))]).run(&["plan", "--format", "json"]);
    assert!(!without.stdout.contains("waits_for"), "{}", without.stdout);
}

/// A link that an earlier call makes leads an edit to a file that another edit has locked.
#[test]
fn paths_are_resolved_again_at_the_start() {
    let calls = [
        ("link", json!({})),
        edit("l"),
        ("hold", json!({"path": "a"})),
    ];
    let output = sandbox(&calls).run(&["run"]).assert_exit(0);
    assert_eq!(order(&output), ["end hold", "start l", "end l"]);
}

/// A call that is already running continues, and one that hasn't started doesn't run.
#[test]
fn a_failure_stops_what_has_not_started() {
    let calls = [("fail", json!({"path": "a"})), edit("b"), edit("a")];
    let output = sandbox(&calls).run(&["run"]).assert_exit(0);
    let texts = output.result_texts();
    assert!(
        !texts[1].1 && texts[2].0.starts_with("Not executed"),
        "{texts:?}"
    );
}

/// Both edits that ran when toolq was killed are in doubt, and nothing after them runs until both are resolved.
#[test]
fn after_a_kill_all_writes_that_ran_are_in_doubt() {
    let calls = [
        edit_until("a", "never"),
        edit_until("b", "never"),
        edit("c"),
        edit("a"),
    ];
    let calls = [&calls[..2], &[("publish", json!({}))], &calls[2..]].concat();
    let sandbox = sandbox(&calls);
    std::fs::write(sandbox.path().join("in"), model_response(&calls)).unwrap();
    let mut child = sandbox
        .command(&["run", "--log", "log.jsonl", "in"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while !(sandbox.path().join("a.on").exists() && sandbox.path().join("b.on").exists()) {
        assert!(began.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let script = r#"
      "$TOOLQ" run -q --log log.jsonl in > one; echo $? >> codes
      ids=$(jq -r 'select(.type == "tool_in_doubt") | .metadata.tool_use_id' log.jsonl | sort -u)
      for id in $ids; do "$TOOLQ" log resolve -q $id --done --result done log.jsonl; echo $? >> codes; done
      "$TOOLQ" run -q --log log.jsonl in > two; echo $? >> codes
      "$TOOLQ" log verify log.jsonl; echo $? >> codes
    "#;
    let output = sandbox.run_shell(script);
    assert_eq!(
        output.file("codes").unwrap(),
        "3\n0\n0\n0\n0\n",
        "{}",
        output.stderr
    );
    let results = |name: &str| {
        let message: Value = serde_json::from_str(&output.file(name).unwrap()).unwrap();
        let texts = message["content"].as_array().unwrap().iter();
        let texts = texts.map(|result| result["content"].as_str().unwrap_or_default().to_owned());
        texts.collect::<Vec<_>>()
    };
    let one = results("one");
    assert!(
        one[..2].iter().all(|text| text.starts_with("In doubt")),
        "{one:?}"
    );
    assert!(
        one[2..].iter().all(|text| text.starts_with("Not executed")),
        "{one:?}"
    );
    assert_eq!(results("two")[..2], ["done", "done"]);
    let lines = order(&output);
    assert_eq!(lines.iter().filter(|line| *line == "publish").count(), 1);
    assert_eq!(lines.len(), 2 + 1 + 4);
}
