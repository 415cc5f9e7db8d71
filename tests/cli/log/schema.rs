//! session-log.schema.json: every record that toolq writes matches the published schema, and every published member
//! is written.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::net::TcpListener;
use std::thread;

use serde_json::{Value, json};
use toolq_core::json_schema::CompiledSchema;
use toolq_log::log_schema;

use crate::log::log_builder::LogBuilder;
use crate::support::scripted_api::{
    ApiBehavior, ScriptedApi, calls_response, message_body, ok_response, text_response,
    tool_use_blocks,
};
use crate::support::{CliSandbox, model_response, parse_json_lines};

/// Tools for calls of every kind: successful, failing, coerced, retried, truncated, timed out, rejected, skipped, in
/// doubt, and too large.
const TOOLS: &str = r#"
defaults: {max_output: 1KiB, on_doubt: continue}
servers:
  notes: {command: [./server], protocol: "2025-11-25"}
  unlocked: {command: [./server], protocol: "2025-11-25"}
  missing: {command: [./no-such-server]}
tools:
  read_note: {input_schema: {type: object}, effect: read, mcp: {server: notes}}
  crash_server: {input_schema: {type: object}, effect: read, mcp: {server: notes}}
  spend: {input_schema: {type: object}, approve: true, command: [echo, spent]}
  say: {input_schema: {type: object, properties: {x: {type: string}}, required: [x]}, effect: read, command: [printf, "%s", "{x}"]}
  count: {input_schema: {type: object, properties: {n: {type: integer}, l: {type: array}}, required: [n]}, effect: read, command: [echo, "{n}"]}
  flood: {input_schema: {type: object}, effect: read, command: [head, -c, "9000", /dev/zero]}
  block: {input_schema: {type: object}, output: content, command: [echo, '[{"type":"text","text":"a"}]']}
  again: {input_schema: {type: object}, effect: idempotent, rate: 30/m, retry: {times: 1, on: ["exit:75"], backoff: 1ms}, command: {argv: [sh, -c, "[ -e done ] || { touch done; exit 75; }"]}}
  late: {input_schema: {type: object}, timeout: {after: 100ms, grace: 50ms}, command: [sleep, "30"]}
  dies: {input_schema: {type: object}, command: [sh, -c, 'kill -SEGV $$']}
  gone: {input_schema: {type: object}, command: [no-such-program]}
  unset: {input_schema: {type: object}, command: {argv: ["true"], env: {K: "${NOT_SET_AT_ALL}"}}}
  nothing: {input_schema: {type: object}}
  inside: {input_schema: {type: object, properties: {p: {type: string}}}, paths: [p], command: [cat, "{p?}"]}
  ask: {input_schema: {type: object}, http: {method: POST, url: "URL"}}
  described: {describe: [echo, '{"input_schema": {"type": "object"}}'], effect: read, command: [echo]}
  undescribed: {describe: [sh, -c, 'kill -SEGV $$'], command: [echo]}
  raw: {input_schema: {type: object}, effect: read, command: [printf, '\377']}
  leave: {input_schema: {type: object}, effect: read, command: [sh, -c, "sleep 60 &"]}
  fill: {input_schema: {type: object}, effect: read, command: {argv: [sh, -c, "exec head -c 9000 /dev/zero > full"], limits: {file_size: 1KiB}}}
  kept: {input_schema: {type: object}, effect: read, concurrency_safe: false, cache: {for: 10m}, command: [echo, kept]}
  stop: {input_schema: {type: object}, on_failure: stop, command: ["false"]}
"#;

/// A server that says something on stderr, and kills itself on request.
const SERVER: &str = r#"#!/bin/sh
echo "listening" >&2
while read -r line; do
  id=${line#*'"id":'}
  id=${id%%,*}
  case $line in
  *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}' ;;
  *'"tools/list"'*) result='{"tools":[{"name":"hum","inputSchema":{"type":"object"}}]}' ;;
  *'"crash_server"'*) kill -9 $$ ;;
  *'"tools/call"'*) result='{"content":[{"type":"audio","data":"AAAA","mimeType":"audio/wav"}]}' ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

fn calls_of_every_kind() -> String {
    let large = "x".repeat(100_000);
    let mut calls: Vec<(&str, Value)> = vec![
        ("spend", json!({})),
        ("say", json!({"x": "a"})),
        ("say", json!({ "x": large })),
        ("count", json!({"n": "3", "l": large_list()})),
        ("inside", json!({"p": "/etc/passwd"})),
        ("missing", json!({})),
        ("missing_tool", json!({})),
        ("unlocked_hum", json!({})),
        ("say", json!({"y": 1})),
        ("say", json!("not an object")),
    ];
    let plain = [
        "flood",
        "crash_server",
        "block",
        "again",
        "late",
        "dies",
        "gone",
        "unset",
        "nothing",
        "described",
        "undescribed",
        "ask",
        "raw",
        "leave",
        "fill",
        "read_note",
        "kept",
        "kept",
        "stop",
    ];
    calls.extend(plain.map(|name| (name, json!({}))));
    calls.push(("count", json!({"n": 1})));
    model_response(&calls)
}

/// Returns a JSON array as a string. It is too large for a record's metadata.
fn large_list() -> String {
    format!("[{}1]", "1,".repeat(20_000))
}

/// Starts a server that reads requests but never responds. Returns its URL.
fn silent_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = stream.unwrap().read(&mut [0; 4 << 10]);
        }
    });
    url
}

/// Returns the schema, changed so that it doesn't allow members that it doesn't name.
fn closed_schema() -> CompiledSchema {
    let mut schema = log_schema();
    for found in schema["$defs"].as_object_mut().unwrap().values_mut() {
        if found["properties"].is_object() {
            found["additionalProperties"] = json!(false);
        }
    }
    compile(&schema)
}

fn compile(schema: &Value) -> CompiledSchema {
    CompiledSchema::compile(schema).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// Returns the records of a run of all calls, of a second one that recovers from a torn record, and of a plan.
fn records_of_every_kind() -> Vec<Value> {
    let script = "cat > in; \"$TOOLQ\" run -q --log log.jsonl --max-calls 9 --approve-with ./approve < in > out; printf '{\"seq\":99' >> log.jsonl; \"$TOOLQ\" run -q --new --log log.jsonl --approve all < in > out; echo '[{\"type\":\"tool_use\",\"id\":\"x\",\"name\":\"spend\",\"input\":{}}]' > spend.json; \"$TOOLQ\" plan -q --out plan.json spend.json > plan; \"$TOOLQ\" run -q --log log.jsonl --plan plan.json spend.json > out; cat log.jsonl";
    let tools = TOOLS.replace("URL", &silent_server());
    let ran = CliSandbox::new()
        .tools(&tools)
        .program("server", SERVER)
        .program("approve", "#!/bin/sh\necho because\n")
        .env("USER", "somebody")
        .stdin(calls_of_every_kind())
        .run_shell(script)
        .assert_exit(0);
    parse_json_lines(&ran.stdout)
}

/// Tools of a run that is killed: an agent that leaks a secret, agents that exceed their budget and their turn limit, a
/// request, and payments that kill toolq. Their probes can't tell whether the payment was made.
const INTERRUPTION_TOOLS: &str = r#"
secrets: [WORD]
tools:
  ask:
    input_schema: {type: object}
    retry: {on: [unavailable], backoff: 1ms}
    agent: {endpoint: "${BASE}", model: model-1, tools: [look]}
  over_budget:
    input_schema: {type: object}
    agent: {endpoint: "${BASE}", model: model-1, tools: [look], budget: {turns: 1}}
  over_turns:
    input_schema: {type: object}
    agent: {endpoint: "${BASE}", model: model-2, tools: [look], max_turns: 1}
  look: {input_schema: {type: object}, effect: read, command: [echo, seen]}
  send: {input_schema: {type: object}, effect: read, http: {method: POST, url: "${BASE}"}}
  pay:
    input_schema: {type: object, properties: {n: {type: integer}}, required: [n]}
    effect: write
    concurrency_safe: true
    probe: [sh, -c, "test $1 = 0 && exit 7; kill -9 $$", sh, "{n}"]
    command: {argv: [sh, -c, 'kill -9 "$(cat pid)"; sleep 60']}
"#;

/// Returns the records of a run with agents that is killed, resumed, resolved and resumed again.
fn records_of_an_interruption() -> Vec<Value> {
    let api = ScriptedApi::with_script(move |number, body| {
        match body["messages"].as_array().map(Vec::len) {
            None => ok_response("done"),
            _ if body["model"] == "model-2" => ok_response(message_body(
                json!(tool_use_blocks(&[("look", json!({}))])),
                "odd",
            )),
            Some(1) if number == 0 => ApiBehavior::Close,
            Some(1) => calls_response(&[("look", json!({}))]),
            Some(_) => text_response("all is well"),
        }
    });
    let resume = "\"$TOOLQ\" run -q --log log in >> out";
    let resolve =
        |n| format!("\"$TOOLQ\" -q log resolve toolu_{n} log --done --result x --error --note y");
    let script = format!(
        "cat > in; sh -c 'echo $$ > pid; exec \"$TOOLQ\" run -q --log log in'; {resume}; test $? = 3; {} && {} && {{ {resume}; test $? = 3; }} && cat log",
        resolve(2),
        resolve(3),
    );
    let empty = || json!({});
    let pay = |n: u32| ("pay", json!({ "n": n }));
    let input = [
        ("ask", empty()),
        ("send", empty()),
        pay(0),
        pay(1),
        ("over_budget", empty()),
        ("over_turns", empty()),
    ];
    let input = model_response(&input).replace("msg_1", "msg_01XFDUDYJgAACzvnptvVoYEL");
    let ran = CliSandbox::new()
        .tools(INTERRUPTION_TOOLS)
        .env("BASE", &api.url)
        .env("WORD", "all is well")
        .stdin(input)
        .run_shell(&script)
        .assert_exit(0);
    parse_json_lines(&ran.stdout)
}

/// Returns the records of a run whose host has the tools read again.
fn records_of_a_reload() -> Vec<Value> {
    let ran = CliSandbox::new()
        .tools("tools:\n  look: {input_schema: {type: object}, effect: read, command: [date]}\n")
        .run_shell(
            r#"echo '{"type":"reload"}' | "$TOOLQ" run --follow --control -q --log reloaded.jsonl > out
            cat reloaded.jsonl"#,
        )
        .assert_exit(0);
    parse_json_lines(&ran.stdout)
}

/// The id of the first question is 0.
fn records_of_a_client_that_approves() -> Vec<Value> {
    let message = |mut message: Value| {
        message["jsonrpc"] = json!("2.0");
        message.to_string()
    };
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "desk"}});
    let begin = [
        message(json!({"id": 1, "method": "initialize", "params": params})),
        message(json!({"id": 2, "method": "tools/call", "params": {"name": "pay"}})),
    ];
    let yes =
        message(json!({"id": 0, "result": {"action": "accept", "content": {"approve": true}}}));
    // Reads what the server says until it asks, and until it has answered.
    let output = CliSandbox::new()
        .tools("version: 1\ntools: {pay: {input_schema: {type: object}, approve: true, command: [echo, paid]}}\n")
        .file("begin", begin.join("\n") + "\n")
        .file("yes", yes + "\n")
        .run_shell(
            r#"mkfifo in out; "$TOOLQ" serve -q --log log.jsonl < in > out & exec 3> in 4< out
            cat begin >&3; while read -r line <&4; do case $line in
            *elicitation/create*) cat yes >&3;; *'"id":2'*) break;; esac; done; exec 3>&-; wait"#,
        )
        .assert_exit(0);
    parse_json_lines(&output.file("log.jsonl").unwrap())
}

/// A result that answers later calls, and a change that moves what it locks.
const KEPT_TOOLS: &str = r#"version: 1
tools:
  look:
    input_schema: {type: object}
    effect: read
    cache: {for: 10m}
    locks: {read: ["file:link"]}
    command: [cat, link]
  relink: {input_schema: {type: object}, locks: {write: ["file:link"]}, command: [ln, -sfn, b, link]}
"#;

fn records_of_kept_results() -> Vec<Value> {
    let calls = [("look", json!({})), ("relink", json!({}))];
    let output = CliSandbox::new()
        .tools(KEPT_TOOLS)
        .stdin(model_response(&calls))
        .run_shell(r#"echo a > a; echo b > b; ln -s a link; "$TOOLQ" run -q --log log.jsonl > out && cat log.jsonl"#)
        .assert_exit(0);
    parse_json_lines(&output.stdout)
}

#[test]
fn every_record_matches_the_published_schema() {
    let schema = closed_schema();
    let records = [
        records_of_a_reload(),
        records_of_a_client_that_approves(),
        records_of_kept_results(),
        records_of_every_kind(),
        records_of_an_interruption(),
    ]
    .concat();
    for record in &records {
        let problems = schema.problem_details(record);
        assert!(problems.is_empty(), "{record}\n{problems:#?}");
    }
    let types: BTreeSet<&str> = records
        .iter()
        .map(|record| record["type"].as_str().unwrap())
        .collect();
    let all_types = [
        "approval",
        "describe_end",
        "describe_start",
        "list_end",
        "list_start",
        "model_response",
        "probe_end",
        "probe_start",
        "recovered",
        "resolve",
        "server_end",
        "server_start",
        "session",
        "session_end",
        "tool_call",
        "tool_in_doubt",
        "tool_result",
        "tool_skipped",
        "tool_start",
        "tools_change",
        "turn",
    ];
    assert_eq!(types, BTreeSet::from(all_types));
    let statuses: BTreeSet<&str> = records
        .iter()
        .filter_map(|record| record["metadata"]["status"].as_str())
        .collect();
    assert!(statuses.len() >= 12, "{statuses:?}");
    assert_every_member_was_seen(&records);
}

/// Asserts that the records have every metadata member that the schema publishes.
#[track_caller]
fn assert_every_member_was_seen(records: &[Value]) {
    let schema = log_schema();
    let forms = schema["oneOf"].as_array().unwrap().iter();
    let (mut published, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for form in forms.filter(|form| form["title"].is_string()) {
        let reference = form["properties"]["metadata"]["$ref"].as_str().unwrap();
        let name = reference.rsplit('/').next().unwrap();
        let members = schema["$defs"][name]["properties"].as_object().unwrap();
        published.extend(members.keys().map(|member| format!("{name}.{member}")));
        let of_type = records
            .iter()
            .filter(|record| record["type"] == form["title"]);
        for record in of_type {
            let members = record["metadata"].as_object().unwrap();
            seen.extend(members.keys().map(|member| format!("{name}.{member}")));
        }
    }
    assert_eq!(published, seen);
}

/// A schema that accepts everything would be useless.
#[test]
fn malformed_records_are_rejected() {
    let schema = compile(&log_schema());
    let records = records_of_every_kind();
    let of_type = |kind: &str| {
        let found = records.iter().find(|record| record["type"] == kind);
        found.unwrap().clone()
    };
    let mut rejected = 0;
    for kind in [
        "session",
        "turn",
        "describe_start",
        "describe_end",
        "server_start",
        "server_end",
        "tool_call",
        "tool_start",
        "tool_result",
        "session_end",
    ] {
        let good = of_type(kind);
        assert!(schema.problem_details(&good).is_empty());
        for member in [
            "seq",
            "id",
            "parentId",
            "timestamp",
            "type",
            "metadata",
            "crc",
        ] {
            let mut bad = good.clone();
            bad.as_object_mut().unwrap().remove(member);
            assert!(
                !schema.problem_details(&bad).is_empty(),
                "{kind} without {member}"
            );
            bad[member] = json!([1.5]);
            assert!(
                !schema.problem_details(&bad).is_empty(),
                "{kind} with another {member}"
            );
            rejected += 2;
        }
        let mut bad = good;
        bad["metadata"] = json!({});
        assert!(
            !schema.problem_details(&bad).is_empty(),
            "{kind} without metadata"
        );
        rejected += 1;
    }
    assert_eq!(rejected, 10 * 15);
}

/// Newer versions of toolq may add members and record types.
#[test]
fn added_members_and_types_are_accepted() {
    let schema = compile(&log_schema());
    let mut log = LogBuilder::new();
    let session = log.session();
    log.add_record(
        "turn",
        Some(session),
        &Value::Null,
        &json!({"turn": 0, "future": "x"}),
    );
    log.add_record(
        "tool_future",
        Some(session),
        &json!([1]),
        &json!({"new": true}),
    );
    for record in parse_json_lines(log.text()).iter().skip(1) {
        let problems = schema.problem_details(record);
        assert!(problems.is_empty(), "{record}\n{problems:#?}");
    }
}
