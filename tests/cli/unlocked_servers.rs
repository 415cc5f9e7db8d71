//! Servers that aren't in tools.lock: their tools are listed when one of them is first needed.

use std::fs;

use crate::support::{CliOutput, CliSandbox, model_response, parse_json_lines};
use serde_json::{Value, json};

/// A server with the tools in its argument, that notes its start, keeps the log as it is then, and dies at a call of `die`.
const SERVER: &str = r#"#!/bin/sh
echo "$1" >> starts
cat run.log > log-at-start 2> /dev/null
while read -r line; do
  rest=${line#*'"id":'}
  id=${rest%%,*}
  case $line in
  *'"method":"server/discover"'*)
    printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"what?"}}\n' "$id" ;;
  *'"method":"initialize"'*)
    printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"notes","version":"1.0"}}}\n' "$id" ;;
  *'"method":"tools/list"'*)
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$(cat "$1.json")" ;;
  *'"name":"die"'*) exit 3 ;;
  *'"method":"tools/call"'*)
    echo call >> calls
    printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"done by %s"}]}}\n' "$id" "$1" ;;
  esac
done
"#;

const NOTES: &str = "version: 1\nservers:\n  notes: {command: [./server, notes]}\n";

/// Two servers and a command.
const MIXED: &str = "version: 1
servers:
  notes: {command: [./server, notes]}
  mail: {command: [./server, mail]}
tools:
  say: {effect: read, input_schema: {type: object}, command: [echo, hello]}
";

fn tool(name: &str) -> Value {
    json!({
        "name": name,
        "description": format!("Does {name}."),
        "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        "annotations": {"readOnlyHint": name == "read"},
    })
}

fn list(names: &[&str]) -> String {
    json!({"tools": names.iter().map(|name| tool(name)).collect::<Value>()}).to_string()
}

fn sandbox(tools: &str) -> CliSandbox {
    CliSandbox::new()
        .tools(tools)
        .program("server", SERVER)
        .file("notes.json", list(&["read", "pay", "odd.name"]))
        .file("mail.json", list(&["read", "send"]))
}

fn call(name: &str) -> String {
    model_response(&[(name, json!({"name": "a"}))])
}

fn lines(output: &CliOutput, name: &str) -> Vec<String> {
    let text = output.file(name).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn types(records: &[Value]) -> Vec<&str> {
    let types = records.iter().map(|record| record["type"].as_str());
    types.map(Option::unwrap).collect()
}

#[test]
fn a_server_is_asked_at_the_first_call_and_that_is_on_record_before() {
    let calls = [
        ("notes_pay", json!({"name": "a"})),
        ("notes_pay", json!({})),
    ];
    let sandbox = sandbox(NOTES).stdin(model_response(&calls));
    let output = sandbox.run(&["run", "--log", "run.log"]).assert_exit(0);
    let [(done, false), (invalid, true)] = &output.result_texts()[..] else {
        panic!("{}", output.stdout);
    };
    assert_eq!(done, "done by notes");
    assert!(invalid.contains("/name: is required"), "{invalid}");
    assert_eq!(lines(&output, "starts"), ["notes"]);
    let at_start = parse_json_lines(&output.file("log-at-start").unwrap());
    assert_eq!(types(&at_start), ["session", "list_start"]);
    let records = parse_json_lines(&output.file("run.log").unwrap());
    assert_eq!(
        types(&records)[..4],
        ["session", "list_start", "server_start", "list_end"]
    );
    let (start, end) = (&records[2], &records[3]);
    assert_eq!(end["parentId"], records[1]["id"]);
    assert_eq!(end["metadata"]["sha256"].as_str().map(str::len), Some(64));
    assert_eq!(start["metadata"]["tools_sha256"], end["metadata"]["sha256"]);
    assert_eq!(end["metadata"]["server"], "notes");
    assert_eq!(end["metadata"]["tools"], 3);
}

/// Only the servers that a call may need are queried.
#[test]
fn servers_whose_prefix_no_call_has_are_not_asked() {
    for (name, asked) in [
        ("say", &[][..]),
        ("unknown", &[]),
        ("notes_", &[]),
        ("notes_read", &["notes"]),
        ("mail_nothing", &["mail"]),
    ] {
        let output = sandbox(MIXED).stdin(call(name)).run(&["run", "-q"]);
        assert_eq!(lines(&output.assert_exit(0), "starts"), asked, "{name}");
    }
}

#[test]
fn the_names_that_a_server_announces_are_those_that_a_lock_would_have() {
    let tools = NOTES.replace(
        "notes]}",
        "notes], prefix: n-, tools: [\"[or]*\"], hints: trust}\nrules: [{tools: \"n-odd*\", effect: idempotent}]",
    );
    let script = r#"
        "$TOOLQ" -q tools --format anthropic > unlocked.json
        "$TOOLQ" -q run in.json > unlocked-run.json
        "$TOOLQ" -q servers lock
        "$TOOLQ" -q tools --format anthropic > locked.json
        "$TOOLQ" -q run in.json > locked-run.json"#;
    let calls =
        ["n-read", "n-odd_name", "n-pay", "notes_read"].map(|name| (name, json!({"name": "a"})));
    let output = sandbox(&tools)
        .file("in.json", model_response(&calls))
        .run_shell(script)
        .assert_exit(0);
    let file = |name: &str| -> Value { serde_json::from_str(&output.file(name).unwrap()).unwrap() };
    assert_eq!(file("unlocked.json"), file("locked.json"));
    assert_eq!(file("unlocked-run.json"), file("locked-run.json"));
    let results = file("locked-run.json");
    let errors = results["content"].as_array().unwrap().iter();
    let errors: Vec<&Value> = errors.map(|result| &result["is_error"]).collect();
    assert_eq!(errors, [false, false, true, true]);
}

#[test]
fn a_plan_and_a_check_ask_nobody_and_say_so() {
    let script = r#"
        "$TOOLQ" check
        "$TOOLQ" tools --format table
        "$TOOLQ" plan --describe in.json"#;
    let declared = format!("{MIXED}  post: {{mcp: {{server: mail, tool: send}}}}\n");
    let calls = [("notes_pay", json!({"bad": 1})), ("post", json!({}))];
    let output = sandbox(&declared)
        .file("in.json", model_response(&calls))
        .run_shell(script)
        .assert_exit(0);
    assert_eq!(output.file("starts"), None);
    for expected in [
        "the server `notes` isn't locked",
        "not all tools of notes are listed",
        "any input is accepted for notes_pay, and not checked: the server notes isn't locked",
        "any input is accepted for post, and not checked: the server mail isn't locked",
    ] {
        assert!(
            output.stderr.contains(expected),
            "{expected}:\n{}",
            output.stderr
        );
    }
    assert!(output.stdout.contains("notes: pay"), "{}", output.stdout);
}

/// The model and stderr learn why they can't be called.
#[test]
fn a_server_that_cannot_be_asked_takes_only_its_own_tools_along() {
    let tools = MIXED.replace(
        "[./server, mail]",
        "[sh, -c, \"echo no license >&2; exit 3\"]",
    ) + "  post: {mcp: {server: mail, tool: send}}\n";
    let calls = ["notes_read", "mail_send", "post", "say"].map(|name| (name, json!({"name": "a"})));
    let sandbox = sandbox(&tools).stdin(model_response(&calls));
    let output = sandbox.run(&["run"]).assert_exit(0);
    let [notes, mail, post, say] = &output.result_texts()[..] else {
        panic!("{}", output.stdout);
    };
    assert_eq!(notes, &("done by notes".to_owned(), false));
    assert_eq!(say, &("hello".to_owned(), false));
    for (text, is_error) in [mail, post] {
        let says_why = text.contains("the server mail couldn't be asked for its tools")
            && text.contains("no license");
        assert!(*is_error && says_why, "{text}");
    }
    assert!(
        output.stderr.contains(
            "the server mail couldn't be asked for its tools, so none of them can be called"
        ),
        "{}",
        output.stderr
    );
    let records = output.log_records();
    let failed = records
        .iter()
        .find(|record| record["type"] == "list_end" && record["metadata"]["error"].is_string());
    assert_eq!(failed.unwrap()["metadata"]["server"], "mail");
}

#[test]
fn declarations_lack_only_the_tools_of_a_server_that_cannot_be_asked() {
    let tools = MIXED.replace("[./server, mail]", "[./missing]")
        + "  post: {mcp: {server: mail, tool: send}}\n";
    let output = sandbox(&tools).run(&["tools"]).assert_exit(1);
    let declared = output.json();
    let names: Vec<&Value> = declared
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(names, ["say", "notes_odd_name", "notes_pay", "notes_read"]);
    let expected = "the server mail couldn't be asked for its tools";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}

/// One of the tools keeps the name, and stderr says which.
#[test]
fn names_that_meet_are_said_plainly() {
    let tools = MIXED.replace("mail]}", "mail], prefix: notes_}");
    let sandbox = sandbox(&tools).stdin(call("notes_read"));
    let output = sandbox.run(&["run"]).assert_exit(0);
    assert_eq!(output.result_texts(), [("done by notes".to_owned(), false)]);
    let expected = "`notes_read` would be the tool `read` of the server `mail`, and is the tool `read` of the server `notes`";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}

#[test]
fn a_declared_tool_takes_the_schema_and_the_description_of_its_server() {
    let tools = format!(
        "{MIXED}  post: {{effect: read, mcp: {{server: mail, tool: send}}}}\n  gone: {{mcp: {{server: mail}}}}\n"
    );
    let calls = [
        ("post", json!({})),
        ("post", json!({"name": "a"})),
        ("gone", json!({})),
    ];
    let sandbox = sandbox(&tools).stdin(model_response(&calls));
    let output = sandbox.run(&["run", "-q"]).assert_exit(0);
    let [(invalid, true), (done, false), (gone, true)] = &output.result_texts()[..] else {
        panic!("{}", output.stdout);
    };
    assert!(invalid.contains("/name: is required"), "{invalid}");
    assert_eq!(done, "done by mail");
    assert!(gone.contains("the server mail has no such tool"), "{gone}");
    assert_eq!(lines(&output, "starts"), ["mail"]);
}

#[test]
fn followed_messages_share_the_answer_of_a_server() {
    let stdin = format!(
        "{}\n{}\n{}\n",
        call("say"),
        call("notes_read"),
        call("notes_pay")
    );
    let sandbox = sandbox(MIXED).stdin(stdin);
    let output = sandbox.run(&["run", "-q", "--follow"]).assert_exit(0);
    let texts: Vec<Value> = output
        .lines()
        .iter()
        .map(|line| line["content"][0]["content"].clone())
        .collect();
    assert_eq!(texts, ["hello", "done by notes", "done by notes"]);
    assert_eq!(lines(&output, "starts"), ["notes"]);
}

#[test]
fn a_stream_asks_the_server_of_a_call_when_it_arrives() {
    let events = r#"event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"notes_read","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"name\": \"a\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":1}}

event: message_stop
data: {"type":"message_stop"}

"#;
    let output = sandbox(MIXED)
        .stdin(events)
        .run(&["run", "-q"])
        .assert_exit(0);
    assert_eq!(output.result_texts(), [("done by notes".to_owned(), false)]);
    assert_eq!(lines(&output, "starts"), ["notes"]);
}

/// What was announced when the run began holds until it ends.
#[test]
fn a_tool_that_changes_while_its_server_restarts_is_refused() {
    let tools = MIXED.replace("[./server, notes]", "[./restarting, notes]");
    let restarting =
        "#!/bin/sh\n[ -e once ] && cp changed.json notes.json\n: > once\nexec ./server \"$@\"\n";
    let changed = list(&["read", "pay", "die"]).replace("Does pay.", "Pays twice.");
    let stdin = format!(
        "{}\n{}\n{}\n",
        call("notes_die"),
        call("notes_pay"),
        call("notes_read")
    );
    let sandbox = sandbox(&tools)
        .program("restarting", restarting)
        .file("notes.json", list(&["read", "pay", "die"]))
        .file("changed.json", changed)
        .stdin(stdin);
    let output = sandbox.run(&["run", "-q", "--follow"]).assert_exit(3);
    let results: Vec<Value> = output
        .lines()
        .iter()
        .map(|line| line["content"][0].clone())
        .collect();
    let text = results[1]["content"].as_str().unwrap();
    let expected = "its server has changed its description since the beginning of this run";
    assert!(text.contains(expected), "{text}");
    assert_eq!(results[1]["is_error"], true);
    assert_eq!(results[2]["content"], "done by notes");
    assert_eq!(lines(&output, "calls").len(), 1);
}

/// A resumed run asks only if a call still has to run.
#[test]
fn results_in_the_log_need_no_server() {
    let script = r#"
        "$TOOLQ" run -q --log run.log in.json > first.json
        rm starts
        "$TOOLQ" run -q --log run.log in.json"#;
    let output = sandbox(NOTES)
        .file("in.json", call("notes_pay"))
        .run_shell(script)
        .assert_exit(0);
    assert_eq!(output.stdout, output.file("first.json").unwrap());
    assert_eq!(output.file("starts"), None);
}

#[test]
fn clients_of_serve_get_what_servers_announce() {
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let tools = MIXED.replace("[./server, mail]", "[./missing]");
    let stdin = format!("{initialize}\n{list}\n");
    let output = sandbox(&tools).stdin(stdin).run(&["serve"]).assert_exit(0);
    let listed = &output.lines()[1]["result"]["tools"];
    let names: Vec<&Value> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(names, ["say", "notes_odd_name", "notes_pay", "notes_read"]);
    assert_eq!(listed[3]["description"], "Does read.");
    assert!(
        output.stderr.contains("the server mail couldn't be asked"),
        "{}",
        output.stderr
    );
    fs::metadata(output.dir.path().join("starts")).unwrap();
}
