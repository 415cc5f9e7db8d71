//! What events and the log say about servers, without secrets.

use std::fs;

use serde_json::{Value, json};

use crate::servers::{SERVER, sandbox};
use crate::support::parse_json_lines;

#[test]
fn events_say_when_a_server_is_ready_and_when_it_has_ended() {
    for (tool, cause, exit) in [("read", "run_ended", 0), ("die", "exited", 3)] {
        let output = sandbox(&[(tool, json!({}))])
            .run(&["run", "-q", "--events", "events"])
            .assert_exit(0);
        let events = parse_json_lines(&output.file("events").unwrap());
        let is_of_server = |event: &&Value| event.get("server").is_some();
        let events: Vec<&Value> = events.iter().filter(is_of_server).collect();
        let (start, end) = (events[0], events[1]);
        assert_eq!(
            (&start["type"], &start["server"], &start["protocol"]),
            (
                &json!("server_started"),
                &json!("notes"),
                &json!("2025-11-25")
            )
        );
        assert!(
            start["ready_ms"].is_u64() && start.get("turn").is_none(),
            "{start}"
        );
        assert_eq!(
            (&end["type"], &end["cause"], &end["exit"], &end["calls"]),
            (
                &json!("server_ended"),
                &json!(cause),
                &json!(exit),
                &json!(1)
            )
        );
        assert_eq!(end["error"].is_string(), tool == "die", "{end}");
    }
}

/// The file beside the log holds what the server said, and the failure its last lines.
#[test]
fn the_log_says_what_a_server_did() {
    let server = SERVER
        .replace(
            "echo \"out of cheese\"",
            "printf 'token %s\\n  in the cellar\\nout of cheese\\n' \"$SERVER_TOKEN\"",
        )
        .replace("*'\"name\":\"hang\"'*)", "*'\"name\":\"hang\"'*) late=$id ;;\n    *'\"name\":\"read\"'*) printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\\n' $late \"$id\" ;;\n    *never*)");
    let calls = ["hang", "read", "die", "read"].map(|tool| (tool, json!({})));
    let output = sandbox(&calls)
        .program("server", &server)
        .env("SERVER_TOKEN", "s3cr3t-canary-value")
        .run_shell(r#""$TOOLQ" run -q -j 1 --log log.jsonl && "$TOOLQ" log verify log.jsonl && "$TOOLQ" log show log.jsonl"#)
        .assert_exit(0);
    let text = output.stdout.clone();
    assert!(
        text.contains("Its stderr ends with:\\ntoken [masked]\\n  in the cellar\\nout of cheese"),
        "{text}"
    );
    assert!(
        text.contains("server notes was ready again after"),
        "{text}"
    );
    let ended =
        "and 3 calls, with 1 unexpected answer and 1 noise line: the server exited with code 3";
    assert!(text.contains(ended), "{text}");

    let log = output.file("log.jsonl").unwrap();
    let records: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of_type = |kind: &str| -> Vec<&Value> {
        let found = records.iter().filter(|record| record["type"] == kind);
        found.collect()
    };
    let (starts, ends) = (of_type("server_start"), of_type("server_end"));
    assert_eq!((starts.len(), ends.len()), (2, 2), "{log}");
    for (number, (start, end)) in starts.iter().zip(&ends).enumerate() {
        let metadata = &start["metadata"];
        assert_eq!(metadata["server"], "notes");
        assert_eq!(metadata["earlier_starts"], number);
        assert_eq!(metadata["protocol"], "2025-11-25");
        assert_eq!(metadata["era"], "legacy");
        assert_eq!(
            (&metadata["name"], &metadata["version"]),
            (&json!("t"), &json!("1"))
        );
        assert!(metadata["ready_ms"].is_u64(), "{start}");
        let pid = output
            .file("starts")
            .unwrap()
            .lines()
            .nth(number)
            .map(str::to_owned);
        assert_eq!(Some(metadata["pid"].to_string()), pid, "{start}");
        assert_eq!(end["parentId"], start["id"]);
    }
    let died = &ends[0]["metadata"];
    assert_eq!(
        (&died["cause"], &died["exit"]),
        (&json!("exited"), &json!(3))
    );
    assert_eq!(died["calls"], 3);
    let file = died["stderr_saved"].as_str().unwrap();
    let saved = fs::read_to_string(output.dir.path().join(file)).unwrap();
    assert_eq!(saved, "token [masked]\n  in the cellar\nout of cheese\n");
    let ended = &ends[1]["metadata"];
    assert_eq!(
        (&ended["cause"], &ended["calls"]),
        (&json!("run_ended"), &json!(1))
    );
    assert!(ended["stderr_saved"].is_null(), "{ended}");
    let last = records.last().unwrap();
    assert_eq!(last["type"], "session_end");
}

/// A server may print the key that it was given.
#[test]
fn the_values_of_a_servers_variables_are_masked() {
    let server = SERVER.replace("out of cheese", "bad token $SERVER_TOKEN");
    let output = sandbox(&[("die", json!({}))])
        .program("server", &server)
        .env("SERVER_TOKEN", "s3cr3t-canary-value")
        .run(&["run"]);
    assert!(
        output.stdout.contains("bad token [masked]"),
        "{}",
        output.stdout
    );
    let log = Value::from(output.log_records()).to_string();
    for text in [&output.stdout, &output.stderr, &log] {
        assert!(!text.contains("s3cr3t-canary"), "{text}");
    }
}

/// It prints a line at each start that isn't a message.
#[test]
fn noise_of_a_server_is_reported_once() {
    let calls = [("die", json!({})), ("read", json!({}))];
    let output = sandbox(&calls).run(&["run", "-j", "1", "--no-log"]);
    let note = "note: notes: skipped 2 lines of noise on its stdout";
    assert_eq!(output.stderr.matches(note).count(), 1, "{}", output.stderr);
}
