//! Servers that don't answer, die, or can't start. `tests/hostile/servers/` has many more.

use serde_json::{Value, json};

use crate::servers::{SERVER, TOOLS, lines, sandbox};

/// The server is told, and a late answer is dropped.
#[test]
fn a_read_that_times_out_is_canceled_and_the_server_goes_on() {
    let output = sandbox(&[("hang", json!({})), ("read", json!({}))]).run(&["run", "-q"]);
    let results = output.result_texts();
    assert!(results[0].0.contains("300ms"), "{results:?}");
    assert_eq!(results[1], ("one\ntwo".to_owned(), false));
    let dir = output.dir.path();
    assert_eq!(lines(dir, "starts").len(), 1);
    assert!(lines(dir, "calls").contains(&"canceled".to_owned()));
}

/// As often as `restarts` says.
#[test]
fn a_server_that_keeps_dying_is_started_only_so_often() {
    let tools = TOOLS.replace("  notes:\n", "  notes:\n    restarts: 1\n");
    let calls = [("die", json!({})), ("die", json!({})), ("read", json!({}))];
    let output = sandbox(&calls).tools(&tools).run(&["run", "-q", "-j", "1"]);
    let results = output.result_texts();
    let text = &results[2].0;
    assert!(
        text.contains("it has ended 2 times within 10m, and isn't started again for now"),
        "{text}"
    );
    assert_eq!(lines(output.dir.path(), "starts").len(), 2);
}

/// Each server ends right after its first answer, often before the next call. That one is sent or not, and only one server gets it.
#[test]
fn a_call_that_was_not_sent_goes_to_the_next_server() {
    let server = SERVER.replace(
        r#""two"}]}}\n' "$id" ;;"#,
        r#""two"}]}}\n' "$id"; exit 3 ;;"#,
    );
    let write = "  write: {input_schema: {type: object}, on_doubt: continue, mcp: {server: notes, tool: read}}\n";
    let tools = TOOLS.replace("  notes:\n", "  notes:\n    restarts: 200\n") + write;
    let calls: Vec<(&str, Value)> = (0..120)
        .map(|n| (["read", "write"][n % 2], json!({ "n": n })))
        .collect();
    let output = sandbox(&calls)
        .tools(&tools)
        .program("server", &server)
        .run(&["run", "-q", "-j", "1", "--log", "log.jsonl"]);
    let results = output.result_texts();
    assert_eq!(results.len(), calls.len());
    let records = lines(output.dir.path(), "log.jsonl");
    let is_start = |record: &&String| record.contains(r#""type":"tool_start""#);
    assert_eq!(records.iter().filter(is_start).count(), calls.len());
    for (text, is_error) in &results {
        let may_be_sent = text.contains("no complete response");
        assert!(!is_error || may_be_sent, "{text}");
    }
    let sent = lines(output.dir.path(), "calls");
    for (n, (_, is_error)) in results.iter().enumerate() {
        let argument = format!(r#""arguments":{{"n":{n}}}"#);
        let count = sent.iter().filter(|line| line.contains(&argument)).count();
        assert!(count <= 1 && (count == 1 || *is_error), "{n}: {sent:?}");
    }
}

/// Its calls get the cause.
#[test]
fn a_server_that_cannot_start_fails_its_calls_alone() {
    let tools = TOOLS.replace("argv: [./server]", "argv: [./missing]");
    let output = sandbox(&[("read", json!({}))])
        .tools(&tools)
        .run(&["run", "-q"]);
    let results = output.result_texts();
    assert!(
        results[0].1 && results[0].0.contains("missing"),
        "{results:?}"
    );
}
