//! `env_file`: values for `${NAME}` and `pass_env`, all of them secrets.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::composition::assert_says;
use crate::support::{CliSandbox, model_response};
use serde_json::json;

const TOOLS: &str = r#"version: 1
env_file: conf/.env
tools:
  show:
    effect: read
    input_schema: {type: object}
    command:
      argv: [sh, -c, 'printf "%s|" "$GIVEN" "$PASSED" "$BOTH" "$UNNAMED" "$MODE"; echo "$PASSED" | rev']
      env: {GIVEN: "<${GIVEN}>"}
      pass_env: [PASSED, BOTH, MODE, API_TOKEN]
  write: {input_schema: {type: object, properties: {path: {type: string}}, required: [path]}, paths: [path], command: [touch, --, "{path}"]}
"#;

const VALUES: &str = "GIVEN=given-hunter2\nexport PASSED='passed hunter2'\nBOTH=file-hunter2\nUNNAMED=hidden-hunter2\nMODE=fast\nAPI_TOKEN=token-hunter2\n";

fn sandbox(values: &str) -> CliSandbox {
    let sandbox = CliSandbox::new().tools(TOOLS).file("conf/.env", values);
    let file = sandbox.path().join("conf/.env");
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    sandbox.env("BOTH", "environment-hunter2")
}

/// The environment takes precedence, nothing else reaches a program, and short values aren't masked.
#[test]
fn values_reach_programs_and_no_output() {
    let turn = model_response(&[("show", json!({}))]);
    let script = r#"
        cat > turn.json
        "$TOOLQ" run --log log.jsonl --events events.ndjson -v turn.json | jq -r '.content[0].content'
        "$TOOLQ" plan turn.json; "$TOOLQ" check; "$TOOLQ" tools
        cat log.jsonl events.ndjson
    "#;
    let output = sandbox(VALUES).stdin(turn).run_shell(script);
    let result = output.stdout.lines().next().unwrap();
    assert_eq!(result, "<[masked]>|[masked]|[masked]||fast|2retnuh dessap");
    let said = output.stdout.clone() + &output.stderr;
    assert!(!said.contains("hunter2"), "{said}");
    assert!(said.contains("no problems"), "{said}");
    let script = r#"
        sed -i 's/echo.*rev/printf "%s " "$GIVEN" "$PASSED" "$BOTH" > seen/' tools.yaml
        "$TOOLQ" call show '{}' > out; cat seen
    "#;
    let output = sandbox(VALUES).run_shell(script);
    let seen = "<given-hunter2> passed hunter2 environment-hunter2 ";
    assert_eq!(output.stdout, seen, "{}", output.stderr);
}

#[test]
fn a_file_that_cannot_be_used_is_an_error_without_its_values() {
    let output = sandbox("A=1\nhunter2\nB=\"hunter2\n").run(&["check"]);
    let expected = [
        "tools.yaml:2:11",
        "conf/.env, line 2: there is no `=`",
        "conf/.env, line 3: the quote isn't closed",
    ];
    assert_says(&output, 1, &expected);
    assert!(!output.stderr.contains("hunter2"), "{}", output.stderr);
    let output = sandbox(VALUES).run_shell("rm conf/.env; \"$TOOLQ\" run < tools.yaml");
    assert_says(&output, 2, &["conf/.env can't be read: No such file"]);
    let output = sandbox(VALUES).run_shell("rm conf/.env; mkfifo conf/.env; \"$TOOLQ\" check");
    assert_says(
        &output,
        1,
        &["conf/.env can't be read: it isn't a regular file"],
    );
}

#[test]
fn a_call_that_writes_is_refused_its_path() {
    let output = sandbox(VALUES).run(&["call", "write", r#"{"path": "conf/.env"}"#]);
    assert_says(&output, 2, &["must not lead to conf/.env"]);
}
