//! Common beginner mistakes in tools.yaml: `check` reports them, and a call that hits one gets an error that explains
//! it.

use crate::support::{CliSandbox, model_response};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;

/// The error blames the working directory, not the program. The operating system reports the same error for both.
#[test]
fn a_missing_working_directory_is_named() {
    let tools = |cwd: &str| {
        format!(
            "version: 1
tools:
  look:
    description: Look.
    input_schema: {{type: object}}
    command: {{argv: [pwd], cwd: {cwd}}}
"
        )
    };
    for (cwd, message) in [
        (
            "nowhere",
            "This tool's working directory `nowhere` doesn't exist.",
        ),
        (
            "plain",
            "This tool's working directory `plain` isn't a directory.",
        ),
    ] {
        let toolq = || CliSandbox::new().tools(&tools(cwd)).file("plain", "");
        let checked = toolq().run(&["check"]).assert_exit(0);
        let warning = format!("there is no directory {cwd} in the root");
        assert!(checked.stderr.contains(&warning), "{}", checked.stderr);
        let ran = toolq()
            .stdin(model_response(&[("look", json!({}))]))
            .run(&["run"])
            .assert_exit(0);
        let (text, is_error) = &ran.result_texts()[0];
        assert!(*is_error && text.starts_with(message), "{text}");
    }
}

/// Nobody is told to correct the input: neither the model nor the person, who reads where the root is named.
#[test]
fn a_missing_root_is_named_with_its_line() {
    let tools = "version: 1
root: nowhere
tools:
  look: {input_schema: {type: object}, effect: read, command: [pwd]}
  show: {input_schema: {type: object, properties: {path: {type: string}}}, effect: read, paths: [path], command: [cat, '{path?}']}
";
    let toolq = || {
        let calls = [("look", json!({})), ("show", json!({"path": "a"}))];
        let input = model_response(&calls);
        CliSandbox::new().tools(tools).file("in.json", input)
    };
    for (arguments, code) in [
        (&["run", "in.json"][..], 0),
        (&["plan", "in.json"], 0),
        (&["replay", "in.json"], 1),
        (&["call", "look", "{}"], 1),
        (&["call", "show", r#"{"path":"a"}"#], 2),
    ] {
        let sandbox = toolq();
        let root = sandbox.path().join("nowhere");
        let ran = sandbox.run(arguments).assert_exit(code);
        let root = root.display();
        let warning = format!("warning: tools.yaml:2: the root {root} doesn't exist, so commands");
        assert!(ran.stderr.starts_with(&warning), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("create it, correct `root`"),
            "{}",
            ran.stderr
        );
        let is_blamed = |text: &str| text.to_lowercase().contains("invalid");
        assert!(
            !is_blamed(&ran.stderr) && !is_blamed(&ran.stdout),
            "{}{}",
            ran.stdout,
            ran.stderr
        );
    }
    let texts = toolq().run(&["run", "in.json"]).result_texts();
    let expected = [
        "This tool's working directory (the root) doesn't exist.\n",
        "show can't run: the working directory (the root) doesn't exist.\n",
    ];
    for ((text, is_error), expected) in texts.iter().zip(expected) {
        assert!(*is_error && text.starts_with(expected), "{text}");
        assert!(
            text.contains("a different input won't change that"),
            "{text}"
        );
    }
    let quiet = toolq().run(&["run", "-q", "in.json"]).assert_exit(0);
    assert_eq!(quiet.stderr, "");
}

/// A schema in a file of its own is one like any other.
#[test]
fn declarations_have_the_schemas_of_files() {
    let toolq = || {
        CliSandbox::new()
            .tools(
                "version: 1
tools:
  find:
    description: Find.
    input_schema: find.json
    command: [grep, -e, \"{text}\", notes]
",
            )
            .file(
                "find.json",
                r#"{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}"#,
            )
    };
    let declared = toolq().run(&["tools"]).assert_exit(0).json();
    assert_eq!(
        declared[0]["input_schema"]["properties"]["text"]["type"],
        "string"
    );
    let declared = toolq()
        .run(&["tools", "--format", "markdown"])
        .assert_exit(0);
    assert!(
        declared.stdout.contains("- `text` (string, required)"),
        "{}",
        declared.stdout
    );
}

/// `init --from` and `check` report what is left to fill in, and `init --from` reports every tool that it leaves out.
#[test]
fn imported_declarations_report_what_is_missing() {
    let tools_list = json!({"result": {"nextCursor": "2", "tools": [
        {"name": "look", "description": "Look.", "inputSchema": {"type": "object"}},
        {"name": "find", "inputSchema": {"type": "object"}},
    ]}});
    let ran = CliSandbox::new()
        .file("mcp.json", tools_list.to_string())
        .run(&["init", "--from", "mcp.json"])
        .assert_exit(0);
    assert!(ran.stderr.contains("`nextCursor`"), "{}", ran.stderr);
    let written = ran.file("tools.yaml").unwrap();
    let checked = CliSandbox::new()
        .tools(&written)
        .run(&["check"])
        .assert_exit(0);
    for message in [
        "`look`, `find` have no `command`, `http`, `agent` or `mcp`",
        "2 tools, 1 warning",
    ] {
        assert!(checked.stderr.contains(message), "{}", checked.stderr);
    }
    let request = json!({"messages": [], "tools": [
        {"type": "web_search_20250305", "name": "web_search"},
        {"name": "look", "input_schema": {"type": "object"}},
    ]});
    let ran = CliSandbox::new()
        .stdin(request.to_string())
        .run(&["init", "--from", "-"])
        .assert_exit(0);
    assert!(
        ran.stderr.contains("runs them itself: `web_search`"),
        "{}",
        ran.stderr
    );
}

/// A bare name is looked up in `PATH`, so a script in the directory of tools.yaml needs a `./`.
#[test]
fn a_program_next_to_the_tools_file_needs_a_slash() {
    let tools = "version: 1
tools:
  flaky:
    description: Fail now and then.
    input_schema: {type: object}
    command: [flaky.sh]
";
    let checked = CliSandbox::new()
        .tools(tools)
        .program("flaky.sh", "#!/bin/sh\n")
        .run(&["check"])
        .assert_exit(0);
    assert!(
        checked.stderr.contains("write ./flaky.sh"),
        "{}",
        checked.stderr
    );
}

/// The two files of a run are easily confused.
#[test]
fn a_tools_file_in_the_place_of_the_input_is_recognized() {
    for start in ["version: 1\n", "# my tools\n", "tools: {}\n"] {
        let ran = CliSandbox::new()
            .tools("version: 1\ntools: {}\n")
            .file("other.yaml", start)
            .run(&["run", "other.yaml"])
            .assert_exit(2);
        assert!(
            ran.stderr
                .contains("this looks like tools.yaml: name it with `-c`"),
            "{}",
            ran.stderr
        );
    }
}

/// If the user forgets the input, toolq must not wait for it on the terminal, since the user waits for toolq.
#[test]
fn a_call_without_a_type_is_told_so() {
    let block = r#"{"id": "toolu_1", "name": "look", "input": {}}"#;
    let ran = CliSandbox::new()
        .tools("tools: {look: {input_schema: {type: object}, command: [ls]}}")
        .stdin(block)
        .run(&["plan"])
        .assert_exit(2);
    assert!(
        ran.stderr.contains(r#""type": "tool_use""#),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_terminal_in_the_place_of_the_input_is_an_error() {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let terminal = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    for name in ["run", "plan"] {
        let sandbox = CliSandbox::new().tools("version: 1\ntools: {}\n");
        let mut command = sandbox.command(&[name]);
        let output = command.stdin(terminal.try_clone().unwrap()).output();
        let output = output.unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("no input: stdin is a terminal"), "{stderr}");
    }
}

/// A stream has no results to replay. The help doesn't offer its formats, but says what to do with one.
#[test]
fn the_formats_of_streams_are_no_recordings() {
    let help = CliSandbox::new().run(&["replay", "--help"]).assert_exit(0);
    assert!(!help.stdout.contains("-sse"), "{}", help.stdout);
    let ran = CliSandbox::new()
        .tools("version: 1\ntools: {}\n")
        .run(&["replay", "--from", "openai-sse", "x"])
        .assert_exit(2);
    assert!(ran.stderr.contains("`toolq plan` checks"), "{}", ran.stderr);
}

/// Some programs record only the payloads of a stream. The hint says what makes it a stream again, and that works.
#[test]
fn the_payloads_of_a_stream_are_named_with_what_makes_them_a_stream() {
    let events = [
        json!({"type": "message_start", "message": {"type": "message", "role": "assistant", "content": []}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "look", "input": {}}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_stop"}),
    ];
    let payloads = events.map(|event| format!("{event}\n")).concat();
    let toolq = || {
        CliSandbox::new()
            .tools("version: 1\ntools: {look: {input_schema: {type: object}, command: [pwd]}}\n")
            .file("payloads", &payloads)
    };
    let refused = toolq().run(&["plan", "payloads"]).assert_exit(2);
    let hint = r#"`awk 'NF {print "data: " $0 "\n"}' FILE | toolq plan`"#;
    assert!(refused.stderr.contains(hint), "{}", refused.stderr);
    let script = r#"awk 'NF {print "data: " $0 "\n"}' payloads | "$TOOLQ" plan"#;
    let planned = toolq().run_shell(script).assert_exit(0);
    assert!(planned.stdout.contains("look"), "{}", planned.stdout);
}

/// A request in which the model hasn't spoken yet has no turns, so nothing is on stdout.
#[test]
fn a_plan_without_turns_says_why_it_is_empty() {
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "hello"}]});
    let ran = CliSandbox::new()
        .tools("version: 1\ntools: {}\n")
        .file("request.json", request.to_string())
        .run(&["plan", "request.json"])
        .assert_exit(0);
    assert_eq!(ran.stdout, "");
    assert_eq!(ran.stderr, "note: the model made no tool calls\n");
}
