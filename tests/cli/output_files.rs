//! Files that flags name for what a command writes: nothing that toolq reads or records is lost to one.

use serde_json::json;

use crate::support::{CliOutput, CliSandbox, model_response};

const TOOLS: &str = "version: 1
include: [included.yaml]
env_file: secrets.env
tools:
  look: {input_schema: schema.json, effect: read, command: [echo, looked]}
";

/// A sandbox with an input, a log of it, and a recording.
fn sandbox() -> CliSandbox {
    let call = json!({"type": "tool_use", "id": "t", "name": "look", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": "t", "content": "looked"});
    let recording = [
        json!({"role": "assistant", "content": [call]}),
        json!({"role": "user", "content": [result]}),
    ];
    let recording: Vec<String> = recording.iter().map(ToString::to_string).collect();
    CliSandbox::new()
        .tools(TOOLS)
        .file("in.json", model_response(&[("look", json!({}))]))
        .file("recording.jsonl", recording.join("\n"))
        .file("included.yaml", "rules: [{tools: look, timeout: 10s}]\n")
        .file("secrets.env", "TOKEN=0123456789\n")
        .file(
            "schema.json",
            r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#,
        )
        .file("tools.lock", r#"{"version":1,"servers":{}}"#)
}

/// Runs a command after one that leaves a log.
fn run(command: &str) -> CliOutput {
    sandbox().run_shell(&format!(
        r#""$TOOLQ" run -q --log log.jsonl in.json > results.json || exit 99
        cp log.jsonl kept.jsonl
        {command}"#
    ))
}

/// The command is refused, and the files stay as they are.
#[test]
fn no_output_overwrites_what_the_command_reads_or_a_session_log() {
    for command in [
        "log export --format html log.jsonl -o log.jsonl",
        "log export --format html log.jsonl -o ./log.jsonl --follow",
        "log export --format trace log.jsonl -o log.jsonl",
        "log export log.jsonl -o log.jsonl",
        "plan --out log.jsonl in.json",
        "plan --out in.json in.json",
        "plan --out tools.yaml in.json",
        "replay recording.jsonl --json recording.jsonl",
        "replay recording.jsonl --junit log.jsonl",
        "replay recording.jsonl --markdown tools.yaml",
        "replay . --html recording.jsonl",
        "run --no-log --events tools.yaml in.json",
        "run --no-log --events log.jsonl in.json",
        "run --no-log --events in.json in.json",
        "plan --out included.yaml in.json",
        "plan --out in.json < in.json",
        "log export --format trace - -o log.jsonl < log.jsonl",
    ] {
        let output = run(&format!(r#""$TOOLQ" {command}"#)).assert_exit(2);
        assert_eq!(output.stdout, "", "{command}");
        let refusal = output.stderr.contains("isn't overwritten: ");
        assert!(refusal, "{command}: {}", output.stderr);
        let before = sandbox();
        for name in ["in.json", "recording.jsonl", "tools.yaml", "included.yaml"] {
            let original = std::fs::read_to_string(before.path().join(name)).ok();
            assert_eq!(output.file(name), original, "{command}: {name}");
        }
        assert_eq!(
            output.file("log.jsonl"),
            output.file("kept.jsonl"),
            "{command}"
        );
    }
}

/// `log` needs none of these files, but the next command would.
#[test]
fn no_output_overwrites_a_file_that_tools_yaml_is_read_from() {
    let commands = [
        "plan in.json --out",
        "run --no-log in.json --events",
        "call --no-log look --events",
        "replay recording.jsonl --json",
        "replay recording.jsonl --html",
        "log export --format html log.jsonl -o",
        "log export --format html log.jsonl --follow -o",
        "log export --format trace log.jsonl -o",
    ];
    let files = [
        "tools.yaml",
        "included.yaml",
        "secrets.env",
        "schema.json",
        "tools.lock",
    ];
    for name in files {
        let refused = |command| format!(r#""$TOOLQ" {command} ./{name} < /dev/null; echo $?;"#);
        let output = run(&commands.map(refused).concat());
        assert_eq!(output.stdout, "2\n".repeat(commands.len()), "{name}");
        let refusal = format!("./{name} isn't overwritten: it is part of the tools file");
        let refusals = output.stderr.matches(&refusal).count();
        assert_eq!(refusals, commands.len(), "{}", output.stderr);
        let original = std::fs::read_to_string(sandbox().path().join(name)).ok();
        assert_eq!(output.file(name), original, "{name}");
    }
}

#[test]
fn two_outputs_get_two_files() {
    for command in [
        "replay recording.jsonl --execute all --log new --json new",
        "replay recording.jsonl --json new --html ./new",
    ] {
        let output = run(&format!(r#""$TOOLQ" {command}"#)).assert_exit(2);
        assert!(
            output.stderr.contains("two outputs would go to"),
            "{}",
            output.stderr
        );
        assert_eq!(output.file("new"), None, "{command}");
    }
    run(r#""$TOOLQ" replay recording.jsonl --json /dev/null --html /dev/null"#).assert_exit(0);
}

/// The same outputs may go to any other file, also to one that is there.
#[test]
fn any_other_file_is_written() {
    for (command, name) in [
        ("log export --format html log.jsonl -o", "page.html"),
        (
            "log export --format html log.jsonl --follow -o",
            "page.html",
        ),
        ("log export --format trace log.jsonl -o", "trace.json"),
        ("log export log.jsonl log.jsonl -o", "recording.jsonl"),
        ("plan in.json --out", "plan.json"),
        ("replay recording.jsonl --json", "report.json"),
        ("run --no-log in.json --events", "events.ndjson"),
    ] {
        let output = run(&format!(r#"touch {name}; "$TOOLQ" {command} {name}"#)).assert_exit(0);
        assert_ne!(output.file(name).unwrap(), "", "{command}");
    }
}

/// Devices, pipes and links are written to, not replaced.
#[test]
fn a_plan_and_a_page_go_where_a_link_leads_and_into_a_pipe() {
    for command in [
        "plan -q in.json --out",
        "log export --format html log.jsonl --follow -o",
    ] {
        let output = run(&format!(
            r#"ln -s target link && mkfifo pipe || exit 98
            "$TOOLQ" {command} link > /dev/null && test -L link || exit 97
            cat pipe > piped & "$TOOLQ" {command} pipe > /dev/null && wait && test -p pipe"#
        ))
        .assert_exit(0);
        let shown = run(&format!(r#""$TOOLQ" {command} /dev/stdout | cat"#)).assert_exit(0);
        assert_ne!(shown.stdout, "", "{command}: {}", shown.stderr);
        let (target, piped) = (
            output.file("target").unwrap(),
            output.file("piped").unwrap(),
        );
        assert!(!target.is_empty() && !piped.is_empty(), "{command}");
    }
}

#[test]
fn an_output_that_cannot_be_written_says_what_the_system_says() {
    for command in [
        "plan in.json --out",
        "log export --format trace log.jsonl -o",
    ] {
        let output = run(&format!(r#""$TOOLQ" {command} missing/new"#));
        let reason = "missing/new can't be written: No such file or directory (os error 2)";
        assert!(output.stderr.contains(reason), "{}", output.stderr);
    }
}
