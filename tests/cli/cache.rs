//! `cache`: results of `read` tools that answer later calls with the same input.

use crate::support::{CliSandbox, model_response};
use serde_json::{Value, json};

/// `look` prints how often it ran. Reads don't share a batch here, so the second one comes after the first.
const TOOLS: &str = r"
version: 1
tools:
  look:
    effect: read
    concurrency_safe: false
    cache: {for: 10m}
    input_schema: {type: object, properties: {x: {type: string}}}
    command: [sh, -c, 'echo look >> ran; cat ran | wc -l; test ! -e broken']
  edit:
    effect: idempotent
    input_schema: {type: object}
    command: [echo, edited]
  large:
    effect: read
    concurrency_safe: false
    cache: {for: 10m}
    max_output: 1KiB
    input_schema: {type: object}
    command: [sh, -c, 'echo large >> ran; cat ran | wc -l; seq 10000']
";

fn run(tools: &str, calls: &[(&str, Value)]) -> (Vec<String>, crate::support::CliOutput) {
    let sandbox = CliSandbox::new().tools(tools);
    let output = sandbox.stdin(model_response(calls)).run(&["run"]);
    let texts = output.result_texts();
    (texts.into_iter().map(|(text, _)| text).collect(), output)
}

#[test]
fn the_same_input_is_answered_from_memory_until_something_may_have_changed() {
    let (x, y) = (json!({"x": "1"}), json!({"x": "2"}));
    let calls = [
        ("look", x.clone()),
        ("look", x.clone()),
        ("look", y),
        ("edit", json!({})),
        ("look", x.clone()),
        ("look", x),
    ];
    let (texts, output) = run(TOOLS, &calls);
    assert_eq!(texts, ["1", "1", "2", "edited", "3", "3"]);
    let records = output.log_records();
    let of_type = |kind: &str| -> Vec<&Value> {
        let records = records.iter();
        records.filter(|record| record["type"] == kind).collect()
    };
    assert_eq!(of_type("tool_call").len(), 6);
    assert_eq!(of_type("tool_start").len(), 4);
    let results = of_type("tool_result");
    assert_eq!(results.len(), 6);
    let cached: Vec<&str> = results
        .iter()
        .filter_map(|result| result["metadata"]["cached"]["tool_use_id"].as_str())
        .collect();
    assert_eq!(cached, ["toolu_0", "toolu_4"]);
    assert_eq!(results[1]["metadata"]["attempts"], 0);
    assert!(results[1]["metadata"]["cached"]["age_ms"].is_u64());
}

/// Others rely on the log: it is in order, its statistics are right, and a resumed run prints the same.
#[test]
fn the_log_of_a_cached_call_is_sound() {
    let calls = [("look", json!({})), ("look", json!({}))];
    let script = r#"
        "$TOOLQ" run --to result-lines --log log.jsonl turn.json > out || exit
        jq -r 'has("cached_age_ms")' out
        "$TOOLQ" log verify log.jsonl > /dev/null || echo WRONG
        "$TOOLQ" log stats --format json log.jsonl | jq -c '.tools[0] | [.runs, .successes, .rejected]'
        "$TOOLQ" run --log log.jsonl --resume turn.json | jq -r '.content[].content'
        wc -l < ran
    "#;
    let output = CliSandbox::new()
        .tools(TOOLS)
        .file("turn.json", model_response(&calls))
        .run_shell(script);
    let lines: Vec<&str> = output.stdout.lines().collect();
    let expected = ["false", "true", "[2,2,0]", "1", "1", "1"];
    assert_eq!(lines, expected, "{}", output.stderr);
}

#[test]
fn errors_and_cut_outputs_are_not_kept() {
    let tools = TOOLS.replace("test ! -e broken", "false");
    let calls = [("look", json!({})), ("look", json!({}))];
    let (texts, _) = run(&tools, &calls);
    assert!(
        texts[0].contains('1') && texts[1].contains('2'),
        "{texts:?}"
    );
    let calls = [("large", json!({})), ("large", json!({}))];
    let (texts, _) = run(TOOLS, &calls);
    assert!(
        texts[0].starts_with("1\n") && texts[1].starts_with("2\n"),
        "{texts:?}"
    );
}

/// A yes counts for one call, whether it runs or not.
#[test]
fn a_cached_call_needs_its_approval() {
    let tools = TOOLS.replace(
        "cache: {for: 10m}\n",
        "cache: {for: 10m}\n    approve: true\n",
    );
    let calls = [("look", json!({})), ("look", json!({}))];
    let approver = "#!/bin/sh\ncat > /dev/null\ntest ! -e asked && touch asked\n";
    let sandbox = CliSandbox::new()
        .tools(&tools)
        .program("approver", approver);
    let sandbox = sandbox.stdin(model_response(&calls));
    let output = sandbox.run(&["run", "--approve-with", "./approver"]);
    let texts = output.result_texts();
    assert_eq!((texts[0].0.as_str(), texts[0].1), ("1", false));
    assert!(texts[1].1, "{texts:?}");
}

/// What an agent or another turn has read counts, and a budget of calls is for those that run.
#[test]
fn turns_share_the_cache_and_budgets_count_what_runs() {
    let line = model_response(&[("look", json!({}))]);
    let lines = format!("{line}\n{line}\n{line}\n");
    let sandbox = CliSandbox::new().tools(TOOLS).stdin(lines);
    let output = sandbox.run(&["run", "--follow", "--max-calls", "1"]);
    let texts: Vec<Value> = output.lines();
    let texts: Vec<&str> = texts
        .iter()
        .map(|message| message["content"][0]["content"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["1", "1", "1"], "{}", output.stderr);
}

/// An edit removes what was read from its file, regardless of the path that was used, and nothing else.
#[test]
fn with_locks_an_edit_removes_only_what_it_meets() {
    let tools = r#"
version: 1
tools:
  look:
    effect: read
    cache: {for: 10m}
    locks: {read: ["file:{path}"]}
    paths: [path]
    input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
    command: [cat, --, "{path}"]
  edit:
    locks: {write: ["file:{path}"]}
    paths: [path]
    input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
    command: {argv: [tee, -a, --, "{path}"], stdin: x}
"#;
    let file = |path: &str| json!({"path": path});
    let calls = [
        ("look", file("a")),
        ("look", file("b")),
        ("edit", file("a")),
        ("look", file("a")),
        ("look", file("b")),
        // The same file by another name.
        ("edit", file("link")),
        ("look", file("a")),
        ("look", file("b")),
    ];
    let sandbox = CliSandbox::new().tools(tools).file("a", "a").file("b", "b");
    let sandbox = sandbox.file("turn.json", model_response(&calls));
    let output = sandbox.run_shell(
        r#"ln -s b link; "$TOOLQ" run -j 1 --to result-lines turn.json | jq -r '[.content, has("cached_age_ms")] | @csv'"#,
    );
    let lines: Vec<&str> = output.stdout.lines().collect();
    let looks = [0, 1, 3, 4, 6, 7].map(|number| lines[number]);
    let expected = [
        r#""a",false"#,
        r#""b",false"#,
        r#""ax",false"#,
        r#""b",true"#,
        r#""ax",true"#,
        r#""bx",false"#,
    ];
    assert_eq!(looks, expected, "{}", output.stderr);
}

/// Reads whose results later runs find, an edit of a file, and one that says nothing of what it changes.
const OVER_RUNS: &str = r#"
version: 1
secrets: [TOKEN]
tools:
  look:
    effect: read
    cache: {for: 10m, over_runs: true}
    locks: {read: ["file:{path}"]}
    paths: [path]
    input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
    command: [sh, -c, 'echo look >> ran; cat -- "$1"', --, "{path}"]
  account:
    effect: read
    cache: {for: 10m, over_runs: true}
    input_schema: {type: object}
    command: {argv: [sh, -c, 'echo $USER_NUMBER'], pass_env: [USER_NUMBER]}
  whole:
    effect: read
    cache: {for: 10m, over_runs: true}
    input_schema: {type: object}
    command: [sh, -c, 'echo whole >> ran; cat ran | wc -l']
  edit:
    locks: {write: ["file:{path}"]}
    paths: [path]
    input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
    command: {argv: [tee, -a, --, "{path}"], stdin: x}
  shell:
    effect: idempotent
    input_schema: {type: object}
    command: ["true"]
"#;

/// Runs of calls with one log, one after another.
struct LoggedRuns(CliSandbox);

impl LoggedRuns {
    fn new() -> Self {
        let sandbox = CliSandbox::new().tools(OVER_RUNS);
        Self(sandbox.file("a", "a").file("b", "b").file("ran", ""))
    }

    /// Runs a call, and returns its text and whether it is from the log.
    fn run(&self, name: &str, input: &Value) -> (String, bool) {
        self.run_with(name, input, &[])
    }

    fn run_with(&self, name: &str, input: &Value, variables: &[(&str, &str)]) -> (String, bool) {
        let block = json!({"type": "tool_use", "id": "toolu_0", "name": name, "input": input});
        std::fs::write(self.0.path().join("call.json"), block.to_string()).unwrap();
        let arguments = [
            "run",
            "--new",
            "--log",
            "log.jsonl",
            "--to",
            "result-lines",
            "call.json",
        ];
        let mut command = self.0.command(&arguments);
        command.envs(variables.iter().copied());
        let output = command.output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let line: Value =
            serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{:?}", output.stderr));
        let text = line["content"].as_str().unwrap().to_owned();
        (text, line.get("cached_age_ms").is_some())
    }

    fn times_run(&self) -> usize {
        std::fs::read_to_string(self.0.path().join("ran"))
            .unwrap()
            .lines()
            .count()
    }
}

fn file(path: &str) -> Value {
    json!({"path": path})
}

/// What one run has read answers the next one, until a call in the log may have changed it.
#[test]
fn over_runs_the_log_answers_until_something_in_it_may_have_changed_that() {
    let runs = LoggedRuns::new();
    let fresh = |text: &str| (text.to_owned(), false);
    let cached = |text: &str| (text.to_owned(), true);
    assert_eq!(runs.run("look", &file("a")), fresh("a"));
    assert_eq!(runs.run("look", &file("b")), fresh("b"));
    assert_eq!(runs.run("look", &file("a")), cached("a"));
    // A result from the log is as old as it is, and isn't a result of its own.
    assert_eq!(runs.run("look", &file("a")), cached("a"));
    assert_eq!(runs.times_run(), 2);
    // Only what the edit meets.
    assert_eq!(runs.run("edit", &file("a")), fresh("x"));
    assert_eq!(runs.run("look", &file("a")), fresh("ax"));
    assert_eq!(runs.run("look", &file("b")), cached("b"));
    // A call without locks may have changed anything.
    runs.run("shell", &json!({}));
    assert_eq!(runs.run("look", &file("a")), fresh("ax"));
    assert_eq!(runs.run("look", &file("b")), fresh("b"));
    // A read without locks may have read anything.
    let (first, _) = runs.run("whole", &json!({}));
    assert_eq!(runs.run("whole", &json!({})), cached(&first));
    runs.run("edit", &file("b"));
    assert!(!runs.run("whole", &json!({})).1);
}

/// Verifying, statistics and resuming know such results, whose age is that of the call that ran.
#[test]
fn the_log_of_a_call_that_an_earlier_run_answers_is_sound() {
    let runs = LoggedRuns::new();
    runs.run("look", &file("a"));
    runs.run("look", &file("a"));
    let script = r#"
        "$TOOLQ" log verify log.jsonl > /dev/null || echo WRONG
        "$TOOLQ" log stats --format json log.jsonl | jq -c '.tools[] | select(.tool_name == "look" or .name == "look") | [.runs, .successes]'
        jq -c 'select(.type == "tool_result") | .metadata | [.cached.tool_use_id, (.cached.age_ms | type), has("kept"), .attempts]' log.jsonl
        "$TOOLQ" run -q --resume --log log.jsonl call.json | jq -r .content
        grep -c '"tool_start"' log.jsonl
    "#;
    let output = runs.0.run_shell(script);
    let lines: Vec<&str> = output.stdout.lines().collect();
    let expected = [
        "[2,2]",
        r#"[null,"null",true,1]"#,
        r#"["toolu_0","number",false,0]"#,
        "a",
        "1",
    ];
    assert_eq!(lines, expected, "{}", output.stderr);
}

/// Another tool, root or target of a link makes another call.
#[test]
fn only_the_same_call_is_answered_by_the_log() {
    let runs = LoggedRuns::new();
    assert!(!runs.run("look", &file("a")).1);
    assert!(runs.run("look", &file("a")).1);
    assert!(!runs.run("look", &file("./a")).1, "another input");
    std::os::unix::fs::symlink("a", runs.0.path().join("link")).unwrap();
    assert!(!runs.run("look", &file("link")).1);
    assert!(runs.run("look", &file("link")).1);
    std::fs::remove_file(runs.0.path().join("link")).unwrap();
    std::os::unix::fs::symlink("b", runs.0.path().join("link")).unwrap();
    assert_eq!(runs.run("look", &file("link")), ("b".to_owned(), false));
    let changed = OVER_RUNS.replace("cat -- ", "cat ");
    std::fs::write(runs.0.path().join("tools.yaml"), changed).unwrap();
    assert!(!runs.run("look", &file("link")).1, "another tool");
}

/// The log would need a digest of the value, by which its readers could find a short secret.
#[test]
fn what_depends_on_a_variable_or_has_a_secret_is_not_answered_by_the_log() {
    let runs = LoggedRuns::new();
    for number in ["1", "1", "2"] {
        let variables = [("USER_NUMBER", number)];
        let answer = runs.run_with("account", &json!({}), &variables);
        assert_eq!(answer, (number.to_owned(), false));
    }
    std::fs::write(runs.0.path().join("s3cr3t"), "s").unwrap();
    for _ in 0..2 {
        let secret = [("TOKEN", "s3cr3t")];
        let answer = runs.run_with("look", &file("s3cr3t"), &secret);
        assert_eq!(answer, ("s".to_owned(), false));
    }
}

#[test]
fn results_that_are_too_old_or_of_another_log_are_not_used() {
    let runs = LoggedRuns::new();
    assert!(!runs.run("look", &file("a")).1);
    let tools = OVER_RUNS.replace("for: 10m", "for: 1ms");
    std::fs::write(runs.0.path().join("tools.yaml"), &tools).unwrap();
    assert!(!runs.run("look", &file("a")).1);
    std::fs::write(runs.0.path().join("tools.yaml"), OVER_RUNS).unwrap();
    std::fs::rename(
        runs.0.path().join("log.jsonl"),
        runs.0.path().join("other.jsonl"),
    )
    .unwrap();
    assert!(!runs.run("look", &file("a")).1);
    let without = OVER_RUNS.replace(", over_runs: true", "");
    std::fs::write(runs.0.path().join("tools.yaml"), without).unwrap();
    assert!(!runs.run("look", &file("a")).1);
}

/// What a run that was killed was changing isn't known, so nothing that it read counts.
#[test]
fn a_run_that_was_killed_within_a_change_leaves_no_results() {
    let tools = format!(
        "{OVER_RUNS}  stuck:\n    effect: idempotent\n    input_schema: {{type: object}}\n    command: [sh, -c, 'touch begun; sleep 600']\n"
    );
    let runs = LoggedRuns(
        CliSandbox::new()
            .tools(&tools)
            .file("a", "a")
            .file("ran", ""),
    );
    assert!(!runs.run("look", &file("a")).1);
    let calls = [("look", file("a")), ("stuck", json!({}))];
    std::fs::write(runs.0.path().join("killed.json"), model_response(&calls)).unwrap();
    let arguments = ["run", "--new", "--log", "log.jsonl", "killed.json"];
    let mut killed = runs.0.command(&arguments).spawn().unwrap();
    crate::support::waiting::wait_until("the call has begun", || {
        runs.0.path().join("begun").exists()
    });
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(!runs.run("look", &file("a")).1);
    assert!(runs.run("look", &file("a")).1);
}

#[test]
fn plan_says_which_calls_may_be_answered_from_memory() {
    let calls = [("look", json!({})), ("edit", json!({}))];
    let script = r#"
        "$TOOLQ" plan turn.json | grep -o 'cached for .*'
        "$TOOLQ" plan --format json turn.json | jq -c '.batches[].calls[].cache'
    "#;
    let output = CliSandbox::new()
        .tools(TOOLS)
        .file("turn.json", model_response(&calls))
        .run_shell(script);
    let lines: Vec<&str> = output.stdout.lines().collect();
    let expected = ["cached for 10m", r#"{"for_ms":600000}"#, "null"];
    assert_eq!(lines, expected, "{}", output.stderr);
}

#[test]
fn only_reads_can_have_a_cache() {
    for (from, to, why) in [
        (
            "effect: read",
            "effect: idempotent",
            "`effect: idempotent` can't have a `cache`",
        ),
        ("{for: 10m}", "{}", "`cache` has no `for`"),
        ("{for: 10m}", "10m", "`cache` must be a table"),
    ] {
        let tools = TOOLS.replace(from, to);
        let output = CliSandbox::new().tools(&tools).run(&["check"]);
        assert!(
            output.code == 1 && output.stderr.contains(why),
            "{}",
            output.stderr
        );
    }
}
