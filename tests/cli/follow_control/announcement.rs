//! The tools that the host process announces, beside those of tools.yaml.

use std::fs;

use serde_json::{Value, json};

use crate::follow_control::host::{Host, SECRET};
use crate::support::CliSandbox;

const TOOLS: &str = r"
version: 1
secrets: [TOKEN]
tools:
  look: {input_schema: {type: object}, effect: read, command: [echo, seen]}
";

#[test]
fn tools_that_cannot_be_used_are_an_error_that_says_where() {
    let mut host = Host::start(TOOLS, &[]);
    let schema = json!({"type": "object"});
    for (tools, at, words) in [
        (
            json!({"look": {"backing": "host", "input_schema": schema}}),
            json!(["look"]),
            "declared in tools.yaml, too",
        ),
        (
            json!({"a": {"backing": "host", "input_schema": schema, "timeout": "soon"}}),
            json!(["a", "timeout"]),
            "soon",
        ),
        (
            json!({"a": {"input_schema": schema}}),
            json!(["a"]),
            "no backing",
        ),
        (
            json!({"a": {"backing": "host", "input_schema": schema, "timeout": SECRET}}),
            json!(["a", "timeout"]),
            "masked",
        ),
    ] {
        host.send_json(&json!({"type": "tools", "id": 7, "tools": tools}));
        let line = host.read_type("error");
        assert_eq!(line["id"], 7);
        let problem = &line["error"]["problems"][0];
        assert_eq!(problem["at"], at, "{line}");
        assert!(
            problem["message"].as_str().unwrap().contains(words),
            "{line}"
        );
        assert!(!line.to_string().contains(SECRET), "{line}");
    }
    host.send(r#"{"type":"tools","tools":[]}"#);
    assert!(
        host.read_type("error")["error"]["message"]
            .as_str()
            .unwrap()
            .contains("an array")
    );
    host.announce(json!({"a": {"effect": "read"}}));
    host.send(r#"{"type":"tools","tools":{}}"#);
    assert!(
        host.read_type("error")["error"]["message"]
            .as_str()
            .unwrap()
            .contains("first line")
    );
    host.turn("x", &[("a", json!({}))]);
    let call = host.read_type("call");
    host.answer_call(&call, &json!("served"));
    assert_eq!(host.read_type("answer")["message"][0]["content"], "served");
    assert_eq!(host.end().code, 3);
}

#[test]
fn tools_yaml_may_be_left_out_if_nobody_names_it() {
    let tools = json!({"a": {"backing": "host", "input_schema": {"type": "object"}}});
    let announcement = json!({"type": "tools", "tools": tools}).to_string() + "\n";
    for (flags, line, code, words) in [
        ("", &*announcement, 0, ""),
        ("-c /dev/null", &announcement, 0, ""),
        (
            "-c missing.yaml",
            &announcement,
            2,
            "missing.yaml can't be read",
        ),
        ("", "", 2, "tools.yaml can't be read"),
        ("-c /dev/null", "", 2, "/dev/null can't be used"),
    ] {
        let command = format!("\"$TOOLQ\" {flags} run --follow --control --no-log");
        let output = CliSandbox::new().stdin(line).run_shell(&command);
        assert_eq!(output.code, code, "{flags}: {}", output.stderr);
        assert!(output.stderr.contains(words), "{flags}: {}", output.stderr);
        let ready = if code == 0 {
            "{\"type\":\"ready\"}\n"
        } else {
            ""
        };
        assert_eq!(output.stdout, ready, "{flags}");
    }
}

/// A host gets the declarations and plans with its own tools in them.
#[test]
fn host_tools_are_listed_and_planned() {
    let mut host = Host::start(TOOLS, &[]);
    host.announce(json!({"greet": {"description": "Greet somebody.", "effect": "read"}}));
    host.send(r#"{"type":"list","id":1,"format":"openai-chat"}"#);
    let list = host.read_type("list");
    let names: Vec<&Value> = list["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["function"]["name"])
        .collect();
    assert_eq!(names, ["look", "greet"]);
    for format in ["anthropic", "openai-responses"] {
        host.send_json(&json!({"type": "list", "id": 2, "format": format}));
        let list = host.read_type("list");
        assert_eq!(list["tools"][1]["name"], "greet", "{list}");
    }
    host.send(r#"{"type":"list","id":3,"format":"table"}"#);
    assert!(
        host.read_type("error")["error"]["message"]
            .to_string()
            .contains("table")
    );
    let call = json!([{"type": "tool_use", "id": "x", "name": "greet", "input": {}}]);
    host.send_json(&json!({"type": "plan", "id": 4, "message": call}));
    let plan = host.read_type("plan");
    assert_eq!(
        plan["plan"]["batches"][0]["calls"][0]["runs"],
        json!({"host": "greet"}),
        "{plan}"
    );
    host.send(r#"{"type":"plan","id":5,"message":5}"#);
    host.read_type("error");
    host.send(r#"{"type":"plan","id":6,"message":{"role":"assistant","content":"Nothing."}}"#);
    assert_eq!(host.read_type("plan")["plan"]["batches"], json!([]));
    let log = host.dir.join("log.jsonl");
    assert_eq!(host.end().code, 3);
    // No call was requested.
    assert!(
        !fs::read_to_string(log)
            .unwrap_or_default()
            .contains("tool_call")
    );
}
