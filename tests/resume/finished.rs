//! What has its result is printed from the log, byte for byte.

use serde_json::{Value, json};

use crate::stage::{Stage, callees, message, tools};

/// A tool for each kind of result; every one notes that it ran.
fn kinds() -> String {
    let mut file = tools(&[
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
    // Flow mappings of several keys become lines.
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

const KINDS: [(&str, u32); 9] = [
    ("text", 1),
    ("fails", 2),
    ("json", 3),
    ("large", 4),
    ("cut", 5),
    ("secret", 6),
    ("blocks", 7),
    ("nobody", 8),
    ("text", 9),
];

fn openai() -> (String, String) {
    let arguments = |n: u32| json!({"n": n}).to_string();
    let calls: Vec<Value> = KINDS
        .iter()
        .map(|(name, n)| json!({"id": format!("call_{n}"), "type": "function", "function": {"name": name, "arguments": arguments(*n)}}))
        .collect();
    let items: Vec<Value> = KINDS
        .iter()
        .map(|(name, n)| json!({"type": "function_call", "call_id": format!("call_{n}"), "name": name, "arguments": arguments(*n)}))
        .collect();
    let chat = json!({"choices": [{"message": {"role": "assistant", "tool_calls": calls}, "finish_reason": "tool_calls"}]});
    let responses = json!({"object": "response", "output": items});
    (chat.to_string(), responses.to_string())
}

/// FAULTS 117: in every form; nothing runs, nothing but the session is recorded.
#[test]
fn a_finished_run_is_printed_again() {
    let message = message(&KINDS);
    let parsed: Value = serde_json::from_str(&message).unwrap();
    let (chat, responses) = openai();
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
        let stage = Stage::new(&kinds(), &input);
        let run = |resume: &[&str]| {
            let mut arguments = vec!["run", "--log", "log.jsonl", "input.json"];
            arguments.extend(resume);
            arguments.extend(to.map(|_| "--to"));
            arguments.extend(to);
            stage
                .with(&[("TOKEN", "s3cr3t-t0ken")], &arguments)
                .exits(0)
        };
        let first = run(&[]);
        let (effects, records) = (stage.effects(), stage.log().len());
        assert!(
            !effects.is_empty() && !first.stdout.contains("s3cr3t"),
            "{}",
            first.stdout
        );
        let again = run(&["--resume"]);
        assert_eq!(again.stdout, first.stdout);
        assert_eq!(stage.effects(), effects);
        assert!(again.stderr.contains("from the log)"), "{}", again.stderr);
        let new = &stage.log()[records..];
        let kinds: Vec<&str> = new
            .iter()
            .map(|record| record["type"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["session", "session_end"]);
        stage.log_is_in_order();
    }
}

/// FAULTS 126: what a full disk kept from being printed is in the log, and the next run prints it.
#[test]
fn what_could_not_be_printed_is_printed_by_the_next_run() {
    let stage = Stage::new(&callees(), &message(&[("look", 1), ("pay", 2)]));
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else {
        return;
    };
    let arguments = ["run", "--log", "log.jsonl", "input.json"];
    assert_eq!(stage.printing_to(full.into(), &arguments), Some(74));
    let effects = stage.effects();
    let next = stage.resume().exits(0);
    assert_eq!(next.texts(), ["looked 1", "paid 2"]);
    assert_eq!(stage.effects(), effects);
}

/// FAULTS 138: the same run leaves the same log, apart from times, ids and what follows from them, whatever the language
/// and the time zone.
#[test]
fn a_log_speaks_no_language() {
    let logged = |variables: &[(&str, &str)]| {
        let stage = Stage::new(&callees(), &message(&[("look", 1), ("pay", 2), ("lok", 3)]));
        let arguments = ["run", "--log", "log.jsonl", "input.json"];
        let done = stage.with(variables, &arguments).exits(0);
        let mut records = stage.log();
        for record in &mut records {
            for own in ["id", "parentId", "timestamp", "prev", "crc"] {
                record.as_object_mut().unwrap().remove(own);
            }
            let metadata = record["metadata"].as_object_mut().unwrap();
            // A tool is another one in another folder.
            let own = "duration_ms pid pid_started cwd root idempotency_key tool_sha256";
            metadata.retain(|name, _| !own.split(' ').any(|own| own == name));
        }
        (done.stdout, records)
    };
    let here = logged(&[("TZ", "UTC"), ("LC_ALL", "C")]);
    let there = logged(&[("TZ", "Asia/Kathmandu"), ("LC_ALL", "tr_TR.UTF-8")]);
    assert_eq!(here, there);
}

/// A result that stands beside the log and is not what it was is not printed, and nothing else is guessed.
#[test]
fn a_body_that_was_changed_is_refused() {
    let stage = Stage::new(&kinds(), &message(&[("large", 1)]));
    stage.run().exits(0);
    let folder = stage.path().join("log.jsonl.d");
    let body = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap();
    let text = std::fs::read_to_string(body.path()).unwrap();
    std::fs::write(body.path(), text.replacen('x', "y", 1)).unwrap();
    let refused = stage.resume().exits(4);
    assert!(
        refused.stderr.contains("has other bytes than were written"),
        "{}",
        refused.stderr
    );
    assert_eq!(stage.effects().len(), 1);
}

/// Recalled calls are told of like others, and say so.
#[test]
fn events_tell_what_comes_from_the_log() {
    let stage = Stage::new(
        &callees(),
        &message(&[("look", 1), ("nobody", 2), ("fatal", 3)]),
    );
    assert_eq!(stage.run().code, None);
    stage.resume().exits(3);
    let arguments = [
        "run",
        "--resume",
        "--log",
        "log.jsonl",
        "--events",
        "events",
        "input.json",
    ];
    stage.toolq(&arguments).exits(3);
    let events = crate::support::json_lines(&stage.read("events"));
    let told: Vec<String> = events
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
    assert_eq!(told, expected);
    let end = stage.log().pop().unwrap();
    assert_eq!(end["metadata"]["recalled"], 2, "{end}");
}

/// What an earlier failure did to others it does again: nothing builds on what is not there.
#[test]
fn policies_see_recalled_failures() {
    let tools = tools(&[
        ("stops", "on_failure: stop", "echo s >> effects; exit 1"),
        (
            "pay",
            "effect: write",
            r#"echo "pay $1" >> effects; echo "paid $1""#,
        ),
    ]);
    let stage = Stage::new(&tools, &message(&[("stops", 1), ("pay", 2)]));
    let first = stage.run().exits(0);
    assert!(first.texts()[1].contains("the preceding stops call failed"));
    assert_eq!(stage.resume().exits(0).stdout, first.stdout);
    assert_eq!(stage.effects(), ["s"]);
    stage.log_is_in_order();
}

/// Without `--log`, the latest session of this input is the one; another input has none.
#[test]
fn the_latest_session_of_the_input_is_resumed() {
    let stage = Stage::new(&callees(), &message(&[("look", 1), ("fatal", 2)]));
    assert_eq!(stage.toolq(&["run", "input.json"]).code, None);
    stage.write("other.json", &message(&[("look", 7)]));
    stage.toolq(&["run", "other.json"]).exits(0);
    let done = stage.toolq(&["run", "--resume", "input.json"]).exits(3);
    assert_eq!(done.texts()[0], "looked 1");
    assert_eq!(
        stage
            .effects()
            .iter()
            .filter(|line| *line == "look 1")
            .count(),
        1
    );
    // The latest session is the one that was written last: the resumed one.
    let resolve = ["log", "resolve", "toolu_1", "--not-done"];
    stage.toolq(&resolve).exits(0);
    let done = stage.toolq(&["run", "--resume", "input.json"]).exits(0);
    assert_eq!(done.texts(), ["looked 1", "done 2"]);
    stage.write("third.json", &message(&[("look", 8)]));
    let new = stage.toolq(&["run", "--resume", "third.json"]).exits(0);
    assert!(
        new.stderr.contains("so this is the first"),
        "{}",
        new.stderr
    );
    assert_eq!(new.texts(), ["looked 8"]);
}

/// A log that isn't there is begun.
#[test]
fn a_first_run_may_say_resume() {
    let stage = Stage::new(&callees(), &message(&[("look", 1), ("pay", 2)]));
    assert_eq!(stage.resume().exits(0).texts(), ["looked 1", "paid 2"]);
    assert_eq!(stage.resume().exits(0).texts(), ["looked 1", "paid 2"]);
    assert_eq!(stage.effects(), ["look 1", "pay 2"]);
    let epochs: Vec<Value> = stage
        .log()
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
