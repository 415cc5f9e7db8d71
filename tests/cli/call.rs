//! `toolq call`: one call of one tool, typed by a person.

use crate::support::{CliOutput, CliSandbox};

const TOOLS: &str = r#"
version: 1
tools:
  greet:
    description: Greets somebody.
    input_schema:
      type: object
      properties: {name: {type: string}, times: {type: integer, default: 1}}
      required: [name]
    effect: read
    command: {argv: [printf, 'Hello, %s!\n', "{name}"], dashes: [name]}
  date:
    description: Needs no input.
    input_schema: {type: object}
    effect: read
    command: [echo, today]
  fail:
    description: Fails.
    input_schema: {type: object}
    effect: read
    command: [sh, -c, "echo nothing there >&2; exit 4"]
  pay:
    description: Pays.
    input_schema: {type: object}
    approve: true
    command: [sh, -c, "echo paid >> paid.txt; sleep 30"]
    timeout: {after: 300ms, grace: 10ms}
"#;

fn call(arguments: &[&str], stdin: &str) -> CliOutput {
    let arguments: Vec<&str> = ["call"].iter().chain(arguments).copied().collect();
    CliSandbox::new().tools(TOOLS).stdin(stdin).run(&arguments)
}

/// As JSON or as the text of the only string, as an argument or on stdin; a text may begin with a dash.
#[test]
fn an_input_can_be_typed_in_four_ways() {
    for (argument, stdin) in [
        (Some(r#"{"name": "Ada"}"#), ""),
        (Some("Ada"), ""),
        (None, r#"{"name": "Ada"}"#),
        (None, "Ada\n"),
    ] {
        let arguments: Vec<&str> = ["greet"].into_iter().chain(argument).collect();
        let ran = call(&arguments, stdin).assert_exit(0);
        assert_eq!(ran.stdout, "Hello, Ada!\n", "{argument:?} {stdin}");
    }
    let ran = call(&["greet", "-n"], "").assert_exit(0);
    assert_eq!(ran.stdout, "Hello, -n!\n");
    let ran = call(&["date"], "").assert_exit(0);
    assert_eq!(ran.stdout, "today\n");
}

#[test]
fn an_error_result_is_printed_and_exits_1() {
    let ran = call(&["fail"], "").assert_exit(1);
    assert!(
        ran.stdout.starts_with("Exit code 4.\nnothing there\n"),
        "{}",
        ran.stdout
    );
    let row = call(&["fail", "--to", "json"], "").assert_exit(1).json();
    assert_eq!(row["status"], "failed");
    assert_eq!(row["tool_name"], "fail");
    assert_eq!(row["is_error"], true);
}

/// Nothing runs, and nothing is logged, so a mistake leaves nothing to clean up.
#[test]
fn a_wrong_name_or_input_is_a_usage_error() {
    let ran = call(&["gret", "Ada"], "").assert_exit(2);
    assert!(ran.stderr.contains("did you mean greet?"), "{}", ran.stderr);
    let ran = call(&["greet", r#"{"nam": "Ada"}"#], "").assert_exit(2);
    assert!(ran.stderr.contains("/name: is required"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("session log"), "{}", ran.stderr);
    let ran = call(&["greet"], "").assert_exit(2);
    assert!(
        ran.stderr
            .contains("echo '{\"name\":\"…\"}' | toolq call greet")
            || ran.stderr.contains("echo 'TEXT' | toolq call greet"),
        "{}",
        ran.stderr
    );
    let ran = call(&["date", "--to", "messages"], "").assert_exit(2);
    assert!(ran.stderr.contains("date is no agent"), "{}", ran.stderr);
    let ran = call(&["greet", r#"{"name": "Ada", "name": "Bob"}"#], "").assert_exit(2);
    assert!(ran.stderr.contains("appears twice"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("pipe it in"), "{}", ran.stderr);
}

#[test]
fn a_call_that_needs_an_approval_does_not_run_without() {
    let ran = call(&["pay"], "").assert_exit(6);
    assert!(ran.file("paid.txt").is_none(), "{}", ran.stdout);
    let ran = call(&["pay", "--approve", "all"], "").assert_exit(1);
    assert_eq!(ran.file("paid.txt").as_deref(), Some("paid\n"));
}

/// A call by a person is new each time, so nothing settles it.
#[test]
fn an_interrupted_write_is_in_doubt() {
    let script = r#"
        "$TOOLQ" call pay --approve all --log log.jsonl & pid=$!
        until [ -e paid.txt ]; do sleep 0.02; done
        kill -TERM $pid; wait $pid; echo "exit $?"
    "#;
    let tools = TOOLS.replace("after: 300ms", "after: 60s");
    let ran = CliSandbox::new()
        .tools(&tools)
        .stdin("{}")
        .run_shell(script);
    let paid = ran.file("paid.txt");
    assert!(ran.stdout.ends_with("exit 143\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("In doubt"), "{}", ran.stdout);
    assert!(ran.stderr.contains("in doubt: pay"), "{}", ran.stderr);
    assert_eq!(paid.as_deref(), Some("paid\n"));
}
