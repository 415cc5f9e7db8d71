//! `defaults` for every program: `env`, `pass_env` and `cwd`.

use crate::composition::assert_says;
use crate::support::{CliSandbox, model_response};
use serde_json::json;

const TOOLS: &str = r#"version: 1
defaults:
  env: {COLOR: never, BASE: "${BASE_TOKEN}", SET: default}
  pass_env: [PASSED, OTHER]
  cwd: work
tools:
  plain:
    effect: read
    input_schema: {type: object}
    command: [./show]
  own:
    effect: read
    input_schema: {type: object, properties: {set: {type: string}}, required: [set]}
    command: {argv: [./show], env: {SET: "{set}", PASSED: own}, pass_env: [COLOR], cwd: other}
"#;

const SHOW: &str = "#!/bin/sh\necho \"$COLOR|$BASE|$SET|$PASSED|$OTHER|${PWD##*/}\"\n";

fn sandbox(tools: &str) -> CliSandbox {
    CliSandbox::new()
        .tools(tools)
        .program("show", SHOW)
        .file("work/file", "")
        .file("other/file", "")
        .env("BASE_TOKEN", "base-hunter2")
        .env("PASSED", "passed")
        .env("OTHER", "other")
        .env("COLOR", "always")
}

/// A program's own keys take precedence by name, and the variables of a default are secrets as anywhere in `env`.
#[test]
fn programs_get_what_they_leave_out() {
    let calls = [("plain", json!({})), ("own", json!({"set": "given"}))];
    let output = sandbox(TOOLS).stdin(model_response(&calls)).run(&["run"]);
    let texts = output.result_texts();
    assert_eq!(texts[0].0, "never|[masked]|default|passed|other|work");
    assert_eq!(texts[1].0, "always|[masked]|given|own|other|other");
    let plan = sandbox(TOOLS)
        .stdin(model_response(&calls))
        .run(&["plan", "--format", "text"]);
    assert!(plan.stdout.contains("COLOR=never"), "{}", plan.stdout);
}

/// A probe of a tool without a command has them, too.
#[test]
fn probes_servers_and_descriptions_get_them() {
    let server = r#"#!/bin/sh
echo "$COLOR|${PWD##*/}" > seen
"#;
    let tools = format!(
        "{TOOLS}  described: {{describe: [./describe], command: [./show]}}
servers: {{s: {{command: [./server]}}}}
"
    );
    let describe = "#!/bin/sh\nprintf '{\"description\": \"%s\", \"input_schema\": {\"type\": \"object\"}}' \"$COLOR ${PWD##*/}\"\n";
    let output = sandbox(&tools)
        .program("describe", describe)
        .program("server", server)
        .run_shell(r#""$TOOLQ" tools; "$TOOLQ" servers > /dev/null; cat work/seen"#);
    assert!(output.stdout.contains("never work"), "{}", output.stdout);
    assert!(output.stdout.contains("never|work"), "{}", output.stderr);
}

#[test]
fn what_cannot_be_a_default_is_refused() {
    for (from, to, why) in [
        ("never", "\"{set}\"", "a default can't contain a value"),
        ("COLOR: never", "TOOLQ_X: never", "reserved"),
        ("cwd: work", "cwd: ../work", "leads out of the root"),
        ("[PASSED, OTHER]", "[\"A B\"]", "isn't a valid name"),
        (
            "tools:\n",
            "servers: {s: {command: [./show], defaults: {cwd: work}}}\ntools:\n",
            "`cwd` has no meaning for the tools of a server",
        ),
    ] {
        let tools = TOOLS.replace(from, to);
        assert_ne!(tools, TOOLS, "{from}");
        let output = sandbox(&tools).run(&["check"]);
        assert_says(&output, 1, &[why]);
        assert!(output.stderr.contains("1 error"), "{}", output.stderr);
    }
}
