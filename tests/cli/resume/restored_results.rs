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
            "effect: write",
            r#"echo t >> effects; printf "a\\n\\342\\200\\250 %s <&> \"" "$1""#,
        ),
        (
            "fails",
            "effect: write",
            r"echo f >> effects; echo out; echo err >&2; exit 3",
        ),
        (
            "json",
            "{effect: write, output: json}",
            r#"echo j >> effects; echo "{ \"n\": 1.00 }""#,
        ),
        (
            "large",
            "{effect: write, max_output: 200KiB}",
            r"echo l >> effects; head -c 100000 /dev/zero | tr \\0 x",
        ),
        (
            "cut",
            "{effect: write, max_output: 1KiB}",
            r"echo c >> effects; seq 1 2000",
        ),
        (
            "secret",
            "effect: write",
            r"echo s >> effects; echo s3cr3t-t0ken",
        ),
        (
            "blocks",
            "{effect: write, output: content}",
            r#"echo b >> effects; echo "[{\"type\":\"text\", \"text\":\"a\\u2028b\"},{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"AA==\"}}]""#,
        ),
    ]);
    // `shell_tools` expects a single line of keys, so split those that have several.
    for line in [
        "{effect: write, output: json}",
        "{effect: write, max_output: 200KiB}",
        "{effect: write, max_output: 1KiB}",
        "{effect: write, output: content}",
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

/// In every input and output form, no call that writes runs again.
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
        let run = || {
            let mut arguments = vec!["run", "--log", "log.jsonl", "input.json"];
            arguments.extend(to.map(|_| "--to"));
            arguments.extend(to);
            sandbox
                .run_with_env(&[("TOKEN", "s3cr3t-t0ken")], &arguments)
                .assert_exit(0)
        };
        let first = run();
        let (effects, records) = (sandbox.effects(), sandbox.log_records().len());
        assert!(
            !effects.is_empty() && !first.stdout.contains("s3cr3t"),
            "{}",
            first.stdout
        );
        let again = run();
        assert_eq!(again.stdout, first.stdout);
        assert_eq!(sandbox.effects(), effects);
        assert!(again.stderr.contains("from memory"), "{}", again.stderr);
        let new = &sandbox.log_records()[records..];
        assert!(new.iter().all(|record| record["type"] != "tool_start"));
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
    let next = sandbox.run().assert_exit(0);
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
            let varying_keys = "key before duration_ms pid pid_started cwd root idempotency_key";
            metadata.retain(|name, _| !varying_keys.split(' ').any(|key| key == name));
        }
        (done.stdout, records)
    };
    let utc_run = logged(&[("TZ", "UTC"), ("LC_ALL", "C")]);
    let kathmandu_run = logged(&[("TZ", "Asia/Kathmandu"), ("LC_ALL", "tr_TR.UTF-8")]);
    assert_eq!(utc_run, kathmandu_run);
}

/// A result whose file has changed isn't printed: nobody knows what it was.
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
    let refused = sandbox.run().assert_exit(3).result_texts();
    assert!(refused[0].starts_with("In doubt: large"), "{refused:?}");
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
    sandbox.run().assert_exit(3);
    let arguments = [
        "run",
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
        "tool_error toolu_2",
        "result_written toolu_0",
        "result_written toolu_1",
        "result_written toolu_2",
        "queue_drained -",
    ];
    assert_eq!(event_lines, expected);
    let end = sandbox.log_records().pop().unwrap();
    assert_eq!(end["metadata"]["recalled"], 1, "{end}");
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
    assert_eq!(sandbox.run().assert_exit(0).stdout, first.stdout);
    assert_eq!(sandbox.effects(), ["s"]);
    sandbox.assert_log_sequence();
}
