//! `include`: files with more tools, rules and servers.

use std::os::unix::fs::symlink;

use crate::composition::assert_says;
use crate::support::{CliSandbox, model_response};
use serde_json::json;

const MAIN: &str = "version: 1
include: [git/tools.yaml, more.yaml]
rules:
  - {tools: status, timeout: 7s}
tools:
  hello: {effect: read, input_schema: {type: object}, command: [echo, hello]}
";

const GIT: &str = "version: 1
rules:
  - {tools: \"{status,hello}\", timeout: 9s}
tools:
  status: {effect: read, input_schema: input.json, command: [./status, \"{short}\"]}
";

const MORE: &str = "tools:
  bye: {effect: read, input_schema: {type: object}, command: [echo, bye]}
";

const INPUT: &str =
    r#"{"type": "object", "properties": {"short": {"type": "boolean"}}, "required": ["short"]}"#;

fn sandbox() -> CliSandbox {
    CliSandbox::new()
        .tools(MAIN)
        .file("git/tools.yaml", GIT)
        .file("git/input.json", INPUT)
        .program("git/status", "#!/bin/sh\necho \"status short=$1\"\n")
        .file("more.yaml", MORE)
}

/// Programs and schemas are beside the file that names them, and the rules of the including file come first.
#[test]
fn tools_of_included_files_run() {
    let calls = [
        ("hello", json!({})),
        ("status", json!({"short": true})),
        ("bye", json!({})),
    ];
    let output = sandbox().stdin(model_response(&calls)).run(&["run"]);
    let texts = output.result_texts();
    let texts: Vec<&str> = texts.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(texts, ["hello", "status short=true", "bye"]);
    let calls = [
        ("hello", json!({})),
        ("status", json!({"short": "maybe"})),
        ("status", json!({"short": true})),
    ];
    let plan = sandbox()
        .stdin(model_response(&calls))
        .run(&["plan", "--format", "json"]);
    let plan = plan.json();
    let timeouts = plan["batches"][0]["calls"].as_array().unwrap().iter();
    let timeouts: Vec<_> = timeouts.map(|call| call["timeout_ms"].clone()).collect();
    assert_eq!(timeouts, [json!(9000), json!(7000)], "{plan}");
    assert_eq!(plan["rejected"][0]["reason"], "invalid_input");
}

/// Each problem is shown with the name and the line of the file that has it.
#[test]
fn problems_are_located_in_the_included_file() {
    let broken = "tools:\n  # a comment\n  status: {timout: 5s, input_schema: {type: object}}\n";
    let output = sandbox().file("git/tools.yaml", broken).run(&["check"]);
    assert_says(&output, 1, &["git/tools.yaml:3:12", "unknown key `timout`"]);
    let output = sandbox()
        .file("git/tools.yaml", "tools: [\n")
        .run(&["check"]);
    assert_says(&output, 1, &["git/tools.yaml:"]);
    let schema = GIT.replace("input.json", "missing.json");
    let output = sandbox().file("git/tools.yaml", schema).run(&["run"]);
    assert_says(&output, 2, &["git/tools.yaml:5:", "missing.json"]);
    let warned = sandbox().file("git/tools.yaml", GIT.replace("./status", "./gone"));
    let output = warned.run(&["check"]);
    assert_says(
        &output,
        0,
        &["git/tools.yaml:5:", "there is no program git/gone"],
    );
    let version = sandbox().file("more.yaml", format!("version: 2\n{MORE}"));
    assert_says(
        &version.run(&["check"]),
        1,
        &["more.yaml:1:10", "version 2"],
    );
}

#[test]
fn a_name_that_stands_twice_is_an_error_that_names_both_places() {
    let twice = MORE.replace("bye", "hello");
    let output = sandbox().file("more.yaml", &twice).run(&["check"]);
    let main_place = "the first one is on line 6 of the file that includes this one";
    let expected = ["more.yaml:2:3", "`hello` is declared twice", main_place];
    assert_says(&output, 1, &expected);
    let twice = MORE.replace("bye", "status");
    let output = sandbox().file("more.yaml", &twice).run(&["check"]);
    let expected = [
        "more.yaml:2:3",
        "the first one is on line 5 of git/tools.yaml",
    ];
    assert_says(&output, 1, &expected);
    let server = "servers: {s: {command: [echo]}}\n";
    let main = MAIN.replace("version: 1\n", &format!("version: 1\n{server}"));
    let output = sandbox().tools(&main).file("more.yaml", server);
    assert_says(
        &output.run(&["check"]),
        1,
        &["the server `s` is declared twice"],
    );
}

/// Only files below the directory of tools.yaml, wherever a link leads, and no included file includes others.
#[test]
fn what_cannot_be_included_is_refused() {
    let main = |name: &str| MAIN.replace("more.yaml", name);
    for (name, why) in [
        ("../outside.yaml", "can't be included"),
        ("/etc/passwd", "isn't below the directory"),
        ("link.yaml", "isn't below the directory"),
        ("missing.yaml", "No such file"),
        ("git", "isn't a regular file"),
        (
            "./git/../git/tools.yaml",
            "git/tools.yaml is included twice",
        ),
        ("tools.yaml", "unknown key `include`"),
        ("root.yaml", "write it in the file that includes this one"),
        ("empty.yaml", "declares nothing"),
        ("list.yaml", "list.yaml"),
    ] {
        let sandbox = sandbox()
            .tools(&main(name))
            .file("root.yaml", format!("root: /\n{MORE}"))
            .file("empty.yaml", "version: 1\n")
            .file("list.yaml", "[]\n");
        symlink("/etc/passwd", sandbox.path().join("link.yaml")).unwrap();
        let output = sandbox.run(&["run"]);
        assert_says(&output, 2, &[why]);
    }
    let output = sandbox().run_shell(r#"rm more.yaml; mkfifo more.yaml; "$TOOLQ" check"#);
    assert_says(&output, 1, &["isn't a regular file"]);
}

/// What may run is declared there, too.
#[test]
fn a_call_that_writes_is_refused_the_path_of_an_included_file() {
    let writer = "  write: {input_schema: {type: object, properties: {path: {type: string}}, required: [path]}, paths: [path], command: [touch, --, \"{path}\"]}\n";
    let call = |path: &str| model_response(&[("write", json!({"path": path}))]);
    for (path, is_refused) in [
        ("git/tools.yaml", true),
        ("more.yaml", true),
        ("git/new", false),
    ] {
        let sandbox = sandbox().tools(&format!("{MAIN}{writer}"));
        let output = sandbox.stdin(call(path)).run(&["run"]);
        assert_eq!(output.result_texts()[0].1, is_refused, "{path}");
    }
}

/// A resumed run notices that a tool in an included file has changed, and the log has another digest of the tools.
#[test]
fn included_files_are_digested() {
    let script = r#"
        "$TOOLQ" run --log one.jsonl turn.json > /dev/null
        sed -i s/short=/long=/ git/status
        sed -i 's/echo, bye/echo, ciao/' more.yaml
        "$TOOLQ" run --log two.jsonl turn.json > /dev/null
        head -qn1 one.jsonl two.jsonl | jq -r .metadata.tools.sha256 | uniq | wc -l
    "#;
    let calls = model_response(&[("hello", json!({}))]);
    let output = sandbox().file("turn.json", calls).run_shell(script);
    assert_eq!(output.stdout.trim(), "2", "{}", output.stderr);
}
