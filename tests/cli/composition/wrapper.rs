//! `wrapper`: a program that runs the programs of tools, servers and probes.

use crate::composition::assert_says;
use crate::support::{CliSandbox, model_response};
use serde_json::json;

const TOOLS: &str = r#"version: 1
defaults: {wrapper: [./wrap, -x, --]}
tools:
  say:
    effect: read
    input_schema: {type: object, properties: {x: {type: string}}, required: [x]}
    command: [./bin/say, "<{x}>"]
  bare:
    effect: read
    input_schema: {type: object}
    wrapper: []
    command: [./bin/say, bare]
  nice:
    effect: read
    input_schema: {type: object}
    wrapper: [nice, -n, "5"]
    command: [./bin/say, nice]
"#;

/// Prints its own arguments, and runs what follows them.
const WRAP: &str = "#!/bin/sh\nprintf '%s ' wrapped \"$1\" \"$2\"; shift 2; exec \"$@\"\n";
const SAY: &str = "#!/bin/sh\necho \"said $*\"\n";

fn sandbox(tools: &str) -> CliSandbox {
    CliSandbox::new()
        .tools(tools)
        .program("wrap", WRAP)
        .program("bin/say", SAY)
}

/// The program of the tool is found beside tools.yaml, wherever the wrapper runs it.
#[test]
fn programs_run_in_a_wrapper() {
    let calls = [
        ("say", json!({"x": "a b"})),
        ("bare", json!({})),
        ("nice", json!({})),
    ];
    let turn = model_response(&calls);
    let output = sandbox(TOOLS).stdin(&turn).run(&["run"]);
    let texts = output.result_texts();
    let texts: Vec<&str> = texts.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(
        texts,
        ["wrapped -x -- said <a b>", "said bare", "said nice"]
    );
    let plan = sandbox(TOOLS)
        .stdin(&turn)
        .run(&["plan", "--format", "json"]);
    let command = &plan.json()["batches"][0]["calls"][0]["runs"]["command"];
    let say = plan.dir.path().join("./bin/say").display().to_string();
    assert_eq!(*command, json!(["./wrap", "-x", "--", say, "<a b>"]));
}

#[test]
fn servers_probes_and_descriptions_run_in_it() {
    let describe = "#!/bin/sh\necho \"$WRAPPED\" >> seen\nprintf '{\"input_schema\": {\"type\": \"object\"}}'\n";
    let server = "#!/bin/sh\necho \"server $WRAPPED\" >> seen\n";
    let tools = TOOLS.replace("[./wrap, -x, --]", "[env, WRAPPED=yes]")
        + "  described: {describe: [./describe], command: [./bin/say]}
servers: {s: {command: [./server]}, t: {command: [./server], wrapper: []}}
";
    let output = sandbox(&tools)
        .program("describe", describe)
        .program("server", server)
        .run_shell(r#""$TOOLQ" tools > /dev/null; "$TOOLQ" servers > /dev/null; sort -u seen"#);
    assert_eq!(
        output.stdout, "server \nserver yes\nyes\n",
        "{}",
        output.stderr
    );
}

#[test]
fn a_wrapper_that_makes_shell_text_is_an_error() {
    for wrapper in [
        "[ssh, host]",
        "[sh, -c]",
        "[su, other, -c]",
        "[script, -qec]",
        "[watch, -n, \"1\"]",
        "[bwrap, --ro-bind, /, /, --, ssh, host]",
        "[docker, exec, box, bash, -c]",
    ] {
        let tools = TOOLS.replace("[nice, -n, \"5\"]", wrapper);
        let output = sandbox(&tools).run(&["check"]);
        assert_says(
            &output,
            1,
            &["tools.yaml:16:5", "makes shell text", "as they are"],
        );
    }
    for (wrapper, why) in [
        (
            "[nice, \"{x}\"]",
            "a wrapper can't contain a value from the input",
        ),
        ("nice", "`wrapper` must be a list"),
    ] {
        let tools = TOOLS.replace("[nice, -n, \"5\"]", wrapper);
        assert_says(&sandbox(&tools).run(&["check"]), 1, &[why]);
    }
    let tools = TOOLS.to_owned() + "  none: {input_schema: {type: object}, wrapper: [nice]}\n";
    assert_says(
        &sandbox(&tools).run(&["check"]),
        1,
        &["no program that the wrapper"],
    );
    let output = sandbox(&TOOLS.replace("./wrap", "./gone")).run(&["check"]);
    assert_says(&output, 0, &["there is no program ./gone"]);
}

/// What the wrapper makes of an argument counts, too.
#[test]
fn values_stay_data_in_a_wrapper() {
    let tools = TOOLS.replace("./bin/say, \"<{x}>\"", "sh, -c, \"{x}\"");
    assert_says(&sandbox(&tools).run(&["check"]), 1, &["part of code"]);
    let tools = TOOLS
        .replace("[./wrap, -x, --]", "[git, -C]")
        .replace("./bin/say, \"<{x}>\"", ".., -c, \"{x}\"");
    assert_says(
        &sandbox(&tools).run(&["check"]),
        1,
        &["an input value can't"],
    );
}

#[test]
fn a_plan_says_what_does_not_end_with_the_call() {
    let tools = TOOLS.replace("[./wrap, -x, --]", "[sudo, docker, exec, -i, box]");
    let turn = model_response(&[("say", json!({"x": "1"})), ("nice", json!({}))]);
    let plan = sandbox(&tools)
        .stdin(&turn)
        .run(&["plan", "--format", "json"]);
    let calls = &plan.json()["batches"][0]["calls"];
    assert_eq!(calls[0]["hands_over_to"], "docker");
    assert_eq!(calls[1].get("hands_over_to"), None);
    let plan = sandbox(&tools).stdin(&turn).run(&["plan"]);
    let note = "docker hands this over: what it starts elsewhere doesn't end with the call";
    assert_eq!(plan.stdout.matches(note).count(), 1, "{}", plan.stdout);
}

/// In a sandbox, the program that the wrapper runs can be read, too, wherever it is.
#[cfg(target_os = "linux")]
#[test]
fn a_sandbox_lets_a_wrapper_start_the_program() {
    let tools = r"root: root
tools:
  say:
    effect: read
    input_schema: {type: object}
    wrapper: [nice]
    sandbox: {read: [system, root], missing: warn}
    command: [./bin/say, confined]
  look:
    effect: read
    input_schema: {type: object}
    wrapper: [nice]
    sandbox: {read: [system, root], missing: warn}
    command: [cat, ../tools.yaml]
";
    let calls = [("say", json!({})), ("look", json!({}))];
    let sandbox = sandbox(tools).file("root/file", "");
    let output = sandbox.stdin(model_response(&calls)).run(&["run"]);
    let texts = output.result_texts();
    assert_eq!((texts[0].0.as_str(), texts[0].1), ("said confined", false));
    let is_confined = texts[1].0.contains("Permission denied");
    assert!(
        is_confined || output.stderr.contains("can't"),
        "{texts:?} {}",
        output.stderr
    );
}
