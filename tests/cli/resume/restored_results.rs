//! Results in the log are printed again, byte for byte.

use serde_json::{Value, json};

use crate::support::resume_sandbox::{
    ResumeSandbox, calls_message, effect_recording_tools, shell_tools,
};

/// Returns a tools.yaml with a tool for each kind of result. Each records that it ran.
fn tools_of_every_result_kind() -> String {
    let mut file = shell_tools(&[
        (
            "text",
            "effect: read",
            r#"echo t >> effects; printf "a\\n\\342\\200\\250 %s <&> \"" "$1""#,
        ),
        (
            "fails",
            "effect: read",
            r"echo f >> effects; echo out; echo err >&2; exit 3",
        ),
        (
            "json",
            "{effect: read, output: json}",
            r#"echo j >> effects; echo "{ \"n\": 1.00 }""#,
        ),
        (
            "large",
            "{effect: read, max_output: 200KiB}",
            r"echo l >> effects; head -c 100000 /dev/zero | tr \\0 x",
        ),
        (
            "cut",
            "{effect: read, max_output: 1KiB}",
            r"echo c >> effects; seq 1 2000",
        ),
        (
            "secret",
            "effect: read",
            r"echo s >> effects; echo s3cr3t-t0ken",
        ),
        (
            "blocks",
            "{effect: read, output: content}",
            r#"echo b >> effects; echo "[{\"type\":\"text\", \"text\":\"a\\u2028b\"},{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"AA==\"}}]""#,
        ),
    ]);
    // `shell_tools` expects a single line of keys, so split those that have several.
    for line in [
        "{effect: read, output: json}",
        "{effect: read, max_output: 200KiB}",
        "{effect: read, max_output: 1KiB}",
        "{effect: read, output: content}",
    ] {
        let lines = line.trim_matches(['{', '}']).replace(", ", "\n    ");
        file = file.replace(line, &lines);
    }
    file.replace("version: 1", "version: 1\nsecrets: [TOKEN]")
}

const CALLS_OF_EVERY_KIND: [(&str, u32); 9] = [
    ("text", 1),
    ("fails", 2),
    ("json", 3),
    ("large", 4),
    ("cut", 5),
    ("secret", 6),
    ("blocks", 7),
    ("missing", 8),
    ("text", 9),
];

fn openai_inputs() -> (String, String) {
    let arguments = |n: u32| json!({"n": n}).to_string();
    let calls: Vec<Value> = CALLS_OF_EVERY_KIND
        .iter()
        .map(|(name, n)| json!({"id": format!("call_{n}"), "type": "function", "function": {"name": name, "arguments": arguments(*n)}}))
        .collect();
    let items: Vec<Value> = CALLS_OF_EVERY_KIND
        .iter()
        .map(|(name, n)| json!({"type": "function_call", "call_id": format!("call_{n}"), "name": name, "arguments": arguments(*n)}))
        .collect();
    let chat = json!({"choices": [{"message": {"role": "assistant", "tool_calls": calls}, "finish_reason": "tool_calls"}]});
    let responses = json!({"object": "response", "output": items});
    (chat.to_string(), responses.to_string())
}

/// In every input and output form, no call runs, and only the session itself is recorded.
#[test]
fn a_finished_run_is_printed_again() {
    let message = calls_message(&CALLS_OF_EVERY_KIND);
    let parsed: Value = serde_json::from_str(&message).unwrap();
    let (chat, responses) = openai_inputs();
    let jsonl = format!("{message}\n{message}");
    for (input, to) in [
        (message.clone(), None),
        (message.clone(), Some("block-lines")),
        (parsed["content"].to_string(), None),
        (parsed["content"][0].to_string(), None),
        (chat, None),
        (responses, None),
        (jsonl, None),
    ] {
        let sandbox = ResumeSandbox::new(&tools_of_every_result_kind(), &input);
        let run = |resume: &[&str]| {
            let mut arguments = vec!["run", "--log", "log.jsonl", "input.json"];
            arguments.extend(resume);
            arguments.extend(to.map(|_| "--to"));
            arguments.extend(to);
            sandbox
                .run_with_env(&[("TOKEN", "s3cr3t-t0ken")], &arguments)
                .assert_exit(0)
        };
        let first = run(&[]);
        let (effects, records) = (sandbox.effects(), sandbox.log_records().len());
        assert!(
            !effects.is_empty() && !first.stdout.contains("s3cr3t"),
            "{}",
            first.stdout
        );
        let again = run(&["--resume"]);
        assert_eq!(again.stdout, first.stdout);
        assert_eq!(sandbox.effects(), effects);
        assert!(again.stderr.contains("from the log"), "{}", again.stderr);
        let new = &sandbox.log_records()[records..];
        let kinds: Vec<&str> = new
            .iter()
            .map(|record| record["type"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["session", "session_end"]);
        sandbox.assert_log_sequence();
    }
}

/// Results that couldn't be written to a full disk are in the log.
#[cfg(target_os = "linux")]
#[test]
fn results_that_could_not_be_printed_are_printed_by_the_next_run() {
    let sandbox = ResumeSandbox::new(
        &effect_recording_tools(),
        &calls_message(&[("look", 1), ("pay", 2)]),
    );
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let arguments = ["run", "--log", "log.jsonl", "input.json"];
    assert_eq!(sandbox.run_with_stdout(full.into(), &arguments), Some(74));
    let effects = sandbox.effects();
    let next = sandbox.resume().assert_exit(0);
    assert_eq!(next.result_texts(), ["looked 1", "paid 2"]);
    assert_eq!(sandbox.effects(), effects);
}

/// The same run writes the same log in any locale and time zone, except for times, IDs, and what depends on them.
#[test]
fn logs_depend_on_neither_locale_nor_time_zone() {
    let logged = |variables: &[(&str, &str)]| {
        let sandbox = ResumeSandbox::new(
            &effect_recording_tools(),
            &calls_message(&[("look", 1), ("pay", 2), ("lok", 3)]),
        );
        let arguments = ["run", "--log", "log.jsonl", "input.json"];
        let done = sandbox.run_with_env(variables, &arguments).assert_exit(0);
        let mut records = sandbox.log_records();
        for record in &mut records {
            for member in ["id", "parentId", "timestamp", "crc"] {
                record.as_object_mut().unwrap().remove(member);
            }
            let metadata = record["metadata"].as_object_mut().unwrap();
            // The digest of a tool depends on its directory.
            let varying_keys = "duration_ms pid pid_started cwd root idempotency_key tool_meaning";
            metadata.retain(|name, _| !varying_keys.split(' ').any(|key| key == name));
        }
        (done.stdout, records)
    };
    let utc_run = logged(&[("TZ", "UTC"), ("LC_ALL", "C")]);
    let kathmandu_run = logged(&[("TZ", "Asia/Kathmandu"), ("LC_ALL", "tr_TR.UTF-8")]);
    assert_eq!(utc_run, kathmandu_run);
}

/// A result whose blob has changed isn't printed.
#[test]
fn a_changed_blob_is_refused() {
    let sandbox = ResumeSandbox::new(
        &tools_of_every_result_kind(),
        &calls_message(&[("large", 1)]),
    );
    sandbox.run().assert_exit(0);
    let dir = sandbox.path().join("log.jsonl.d");
    let blob = std::fs::read_dir(dir).unwrap().next().unwrap().unwrap();
    let text = std::fs::read_to_string(blob.path()).unwrap();
    std::fs::write(blob.path(), text.replacen('x', "y", 1)).unwrap();
    let refused = sandbox.resume().assert_exit(4);
    assert!(
        refused.stderr.contains("doesn't match its SHA-256"),
        "{}",
        refused.stderr
    );
    assert_eq!(sandbox.effects().len(), 1);
}

/// Restored results have the usual events, marked as `recalled`.
#[test]
fn events_mark_restored_results() {
    let sandbox = ResumeSandbox::new(
        &effect_recording_tools(),
        &calls_message(&[("look", 1), ("missing", 2), ("fatal", 3)]),
    );
    assert_eq!(sandbox.run().code, None);
    sandbox.resume().assert_exit(3);
    let arguments = [
        "run",
        "--resume",
        "--log",
        "log.jsonl",
        "--events",
        "events",
        "input.json",
    ];
    sandbox.run_toolq(&arguments).assert_exit(3);
    let events = crate::support::parse_json_lines(&sandbox.read_file("events"));
    let event_lines: Vec<String> = events
        .iter()
        .map(|event| {
            let recalled = if event["recalled"] == true {
                " recalled"
            } else {
                ""
            };
            let id = event["tool_use_id"].as_str().unwrap_or("-");
            format!("{} {id}{recalled}", event["type"].as_str().unwrap())
        })
        .collect();
    let expected = [
        "tool_queued toolu_0",
        "tool_completed toolu_0 recalled",
        "tool_queued toolu_1",
        "tool_error toolu_1",
        "tool_queued toolu_2",
        "tool_error toolu_2 recalled",
        "result_written toolu_0",
        "result_written toolu_1",
        "result_written toolu_2",
        "queue_drained -",
    ];
    assert_eq!(event_lines, expected);
    let end = sandbox.log_records().pop().unwrap();
    assert_eq!(end["metadata"]["recalled"], 2, "{end}");
}

/// A restored failure still keeps later calls from running.
#[test]
fn on_failure_applies_to_restored_failures() {
    let tools = shell_tools(&[
        ("stops", "on_failure: stop", "echo s >> effects; exit 1"),
        (
            "pay",
            "effect: write",
            r#"echo "pay $1" >> effects; echo "paid $1""#,
        ),
    ]);
    let sandbox = ResumeSandbox::new(&tools, &calls_message(&[("stops", 1), ("pay", 2)]));
    let first = sandbox.run().assert_exit(0);
    assert!(first.result_texts()[1].contains("the preceding stops call failed"));
    assert_eq!(sandbox.resume().assert_exit(0).stdout, first.stdout);
    assert_eq!(sandbox.effects(), ["s"]);
    sandbox.assert_log_sequence();
}

/// Without `--log`, the latest session of this input is resumed.
#[test]
fn the_latest_session_of_the_input_is_resumed() {
    let sandbox = ResumeSandbox::new(
        &effect_recording_tools(),
        &calls_message(&[("look", 1), ("fatal", 2)]),
    );
    assert_eq!(sandbox.run_toolq(&["run", "input.json"]).code, None);
    sandbox.write_file("other.json", &calls_message(&[("look", 7)]));
    sandbox.run_toolq(&["run", "other.json"]).assert_exit(0);
    let done = sandbox
        .run_toolq(&["run", "--resume", "input.json"])
        .assert_exit(3);
    assert_eq!(done.result_texts()[0], "looked 1");
    assert_eq!(
        sandbox
            .effects()
            .iter()
            .filter(|line| *line == "look 1")
            .count(),
        1
    );
    // The latest session is the one that was written last, so the resumed one.
    let resolve = ["log", "resolve", "toolu_1", "--not-done"];
    sandbox.run_toolq(&resolve).assert_exit(0);
    let done = sandbox
        .run_toolq(&["run", "--resume", "input.json"])
        .assert_exit(0);
    assert_eq!(done.result_texts(), ["looked 1", "done 2"]);
    sandbox.write_file("third.json", &calls_message(&[("look", 8)]));
    let new = sandbox
        .run_toolq(&["run", "--resume", "third.json"])
        .assert_exit(0);
    assert!(new.stderr.contains("starting a new one"), "{}", new.stderr);
    assert_eq!(new.result_texts(), ["looked 8"]);
}

/// `--resume` creates the log if it doesn't exist.
#[test]
fn the_first_run_may_use_resume() {
    let sandbox = ResumeSandbox::new(
        &effect_recording_tools(),
        &calls_message(&[("look", 1), ("pay", 2)]),
    );
    assert_eq!(
        sandbox.resume().assert_exit(0).result_texts(),
        ["looked 1", "paid 2"]
    );
    assert_eq!(
        sandbox.resume().assert_exit(0).result_texts(),
        ["looked 1", "paid 2"]
    );
    assert_eq!(sandbox.effects(), ["look 1", "pay 2"]);
    let epochs: Vec<Value> = sandbox
        .log_records()
        .iter()
        .filter(|record| record["type"] == "session")
        .map(|record| {
            json!([
                record["metadata"]["epoch"],
                record["metadata"]["resumes"].is_string()
            ])
        })
        .collect();
    assert_eq!(epochs, [json!([1, false]), json!([2, true])]);
}
