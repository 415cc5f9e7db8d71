//! When servers start and end.

use serde_json::{Value, json};

use crate::servers::{SERVER, TOOLS, lines, sandbox};
use crate::support::waiting::wait_until_gone;

/// Neither the server nor what it started outlives toolq.
#[test]
fn calls_of_one_server_share_its_process_which_ends_with_the_run() {
    let calls: Vec<(&str, Value)> = (0..5).map(|_| ("read", json!({}))).collect();
    let output = sandbox(&calls).run(&["run", "-q"]).assert_exit(0);
    assert_eq!(
        output.result_texts(),
        vec![("one\ntwo".to_owned(), false); 5]
    );
    let dir = output.dir.path();
    assert_eq!(lines(dir, "starts").len(), 1);
    assert_eq!(lines(dir, "calls").len(), 5);
    assert_eq!(lines(dir, "ends"), ["eof"], "the server ended by itself");
}

#[test]
fn nothing_starts_without_a_call() {
    for arguments in [&["plan"][..], &["check"], &["tools"]] {
        let output = sandbox(&[("read", json!({}))])
            .run(arguments)
            .assert_exit(0);
        assert_eq!(output.file("starts"), None, "{arguments:?}");
    }
}

/// `defaults: {leftovers: allow}` is about commands. A server that outlived the run would wait for a client that is gone.
#[test]
#[cfg(target_os = "linux")]
fn a_server_ends_with_the_run_even_where_commands_may_leave_processes() {
    let tools = TOOLS.replace("servers:\n", "defaults: {leftovers: allow}\nservers:\n");
    let tools = tools.replace("timeout: 300s", "timeout: 300ms");
    let output = sandbox(&[("leave", json!({}))])
        .tools(&tools)
        .run(&["run", "-q"]);
    let pids = lines(output.dir.path(), "starts");
    assert_eq!(pids.len(), 2);
    wait_until_gone(&pids);
}

/// The second call comes when the server has ended, and isn't counted as a restart.
#[test]
fn a_server_that_nobody_calls_is_ended_and_started_again() {
    let tools = TOOLS.replace("  notes:\n", "  notes:\n    idle: 50ms\n    restarts: 0\n");
    let tools = tools.replace(
        "  fail: *read",
        "  wait: {input_schema: {type: object}, command: [sh, -c, 'until [ -e ends ]; do sleep 0.05; done']}\n  fail: *read",
    );
    let calls = ["read", "wait", "read"].map(|tool| (tool, json!({})));
    let script = r#""$TOOLQ" run -q --log log.jsonl; jq -c 'select(.type == "server_end").metadata | [.cause, .calls]' log.jsonl >&2"#;
    let output = sandbox(&calls).tools(&tools).run_shell(script);
    let results = output.result_texts();
    assert!(results.iter().all(|(_, is_error)| !is_error), "{results:?}");
    assert_eq!(lines(output.dir.path(), "starts").len(), 2);
    assert_eq!(lines(output.dir.path(), "ends"), ["eof", "eof"]);
    assert!(output.stderr.contains(r#"["idle",1]"#), "{}", output.stderr);
}

/// An idle server that takes long to end, until the test releases it or SIGKILL ends it after 4 s. A call that needs it
/// again waits within its own timeout, and calls of another server don't wait at all.
#[test]
fn a_server_that_takes_long_to_end_holds_up_only_its_own_calls() {
    let slow_end = "trap '' TERM; echo eof >> ends; until [ -e released ]; do sleep 0.05; done; echo released >> ends";
    let server = SERVER.replace("echo eof >> ends", slow_end);
    let other = SERVER.replace(">> ends", ">> other_ends");
    let other = other.replace(">> starts", ">> other_starts");
    let tools = TOOLS
        .replace(
            "  notes:\n",
            "  other: {command: {argv: [./other]}}\n  notes:\n    idle: 50ms\n",
        )
        .replace(
            "  fail: *read",
            "  wait: {input_schema: {type: object}, command: [sh, -c, 'until [ -e ends ]; do sleep 0.05; done']}
  release: {input_schema: {type: object}, command: [touch, released]}
  impatient: {input_schema: {type: object}, effect: read, timeout: 300ms, mcp: {server: notes, tool: read}}
  other: {input_schema: {type: object}, effect: read, mcp: {server: other}}
  fail: *read",
        );
    let calls = ["read", "wait", "impatient", "other", "release"].map(|tool| (tool, json!({})));
    let output = sandbox(&calls)
        .tools(&tools)
        .program("server", &server)
        .program("other", &other)
        .run(&["run", "-q"]);
    let results = output.result_texts();
    assert!(
        results[2].0.contains("not ready within 300ms"),
        "{results:?}"
    );
    assert_eq!(results[3], ("one\ntwo".to_owned(), false));
    let dir = output.dir.path();
    assert_eq!(lines(dir, "ends"), ["eof", "released"], "{results:?}");
    assert_eq!(lines(dir, "starts").len(), 1, "nobody needs it any more");
}

/// A call that takes long is no lack of calls.
#[test]
fn a_server_with_a_call_is_not_idle() {
    let tools = TOOLS.replace("  notes:\n", "  notes:\n    idle: 1ms\n");
    let calls = [("hang", json!({}))];
    let output = sandbox(&calls).tools(&tools).run(&["run", "-q"]);
    let results = output.result_texts();
    assert!(results[0].0.contains("300ms"), "{results:?}");
}

/// A read is interrupted, a write that the server has may have happened, and the server ends, also after a second signal.
#[test]
fn signals_end_running_calls_and_their_server() {
    let tools = TOOLS.replace("timeout: 300ms", "timeout: 300s");
    for (tool, status) in [("hang", "interrupted"), ("pay", "in_doubt")] {
        for again in ["", "sleep 0.2; kill -TERM $pid 2> /dev/null;"] {
            let script = format!(
                r#""$TOOLQ" run -q --log log.jsonl < in.json & pid=$!
until [ -s calls ]; do sleep 0.02; done
kill -TERM $pid; {again}
wait $pid; echo "exit $?" >&2
jq -r '.metadata.status // empty' log.jsonl >&2"#
            );
            let sandbox = sandbox(&[]).tools(&tools);
            let input = format!(r#"{{"type":"tool_use","id":"c0","name":"{tool}","input":{{}}}}"#);
            let output = sandbox.file("in.json", input).run_shell(&script);
            let (doubt, ended) = output.stderr.split_once("exit ").unwrap();
            assert_eq!(ended, format!("143\n{status}\n"), "{tool} {again}");
            let is_in_doubt = doubt.starts_with("warning: in doubt: pay c0.");
            assert_eq!(is_in_doubt, status == "in_doubt", "{doubt}");
            wait_until_gone(&lines(output.dir.path(), "starts"));
        }
    }
}
