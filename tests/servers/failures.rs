//! Servers that don't answer, die, or never get ready.

use serde_json::json;

use crate::{TOOLS, lines, sandbox};

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

#[test]
fn a_write_without_an_answer_is_in_doubt_and_runs_no_second_time() {
    for tool in ["pay", "die_paying"] {
        let script = r#"cat > in.json
            "$TOOLQ" run -q --log log.jsonl in.json > first.json
            "$TOOLQ" run -q --log log.jsonl --resume in.json"#;
        let output = sandbox(&[(tool, json!({}))])
            .run_shell(script)
            .assert_exit(3);
        let results = output.result_texts();
        assert!(results[0].0.starts_with("In doubt:"), "{results:?}");
        assert_eq!(output.file("first.json").as_ref(), Some(&output.stdout));
        let calls = lines(output.dir.path(), "calls");
        let made = calls
            .iter()
            .filter(|line| line.contains("tools/call"))
            .count();
        assert_eq!(made, 1, "{tool}: {calls:?}");
    }
}

#[test]
fn a_server_that_dies_fails_its_call_with_its_last_words_and_starts_again() {
    let calls = [("die", json!({})), ("read", json!({}))];
    let output = sandbox(&calls).run(&["run", "-q", "-j", "1"]);
    let results = output.result_texts();
    assert!(results[0].0.contains("out of cheese"), "{results:?}");
    assert_eq!(results[1], ("one\ntwo".to_owned(), false));
    assert_eq!(lines(output.dir.path(), "starts").len(), 2);
}

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

#[test]
fn a_server_that_is_never_ready_is_given_up() {
    let tools = TOOLS
        .replace("argv: [./server]", "argv: [sleep, \"600\"]")
        .replace("  notes:\n", "  notes:\n    startup: 300ms\n");
    let output = sandbox(&[("read", json!({}))])
        .tools(&tools)
        .run(&["run", "-q"]);
    let results = output.result_texts();
    assert!(
        results[0].0.contains("wasn't ready after 300ms"),
        "{results:?}"
    );
}
