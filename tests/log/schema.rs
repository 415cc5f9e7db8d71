//! session-log.schema.json: what is published is what is written, member by member.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::net::TcpListener;
use std::path::Path;
use std::thread;

use serde_json::{Value, json};
use toolq_core::json_schema::Schema;
use toolq_log::log_schema;

use crate::api::{Act, Api, Step, calls, message, ok, text, uses};
use crate::forge::Forge;
use crate::support::{Toolq, json_lines, response};

/// Calls of every sort: that succeed, fail, are coerced, retried, cut, too late, rejected, skipped, in doubt, too large.
const TOOLS: &str = r#"
defaults: {max_output: 1KiB}
tools:
  say: {input_schema: {type: object, properties: {x: {type: string}}, required: [x]}, effect: read, command: [printf, "%s", "{x}"]}
  count: {input_schema: {type: object, properties: {n: {type: integer}, l: {type: array}}, required: [n]}, effect: read, command: [echo, "{n}"]}
  flood: {input_schema: {type: object}, effect: read, command: [head, -c, "9000", /dev/zero]}
  block: {input_schema: {type: object}, output: content, command: [echo, '[{"type":"text","text":"a"}]']}
  again: {input_schema: {type: object}, effect: idempotent, retry: {times: 1, on: ["exit:75"], backoff: 1ms}, command: {argv: [sh, -c, "[ -e done ] || { touch done; exit 75; }"]}}
  late: {input_schema: {type: object}, timeout: {after: 100ms, grace: 50ms}, command: [sleep, "30"]}
  dies: {input_schema: {type: object}, command: [sh, -c, 'kill -SEGV $$']}
  gone: {input_schema: {type: object}, command: [no-such-program]}
  unset: {input_schema: {type: object}, command: {argv: ["true"], env: {K: "${NOT_SET_AT_ALL}"}}}
  nothing: {input_schema: {type: object}}
  inside: {input_schema: {type: object, properties: {p: {type: string}}}, paths: [p], command: [cat, "{p?}"]}
  ask: {input_schema: {type: object}, http: {method: POST, url: "URL"}}
  tells: {describe: [echo, '{"input_schema": {"type": "object"}}'], effect: read, command: [echo]}
  mute: {describe: [sh, -c, 'kill -SEGV $$'], command: [echo]}
  raw: {input_schema: {type: object}, effect: read, command: [printf, '\377']}
  leave: {input_schema: {type: object}, effect: read, command: [sh, -c, "sleep 60 &"]}
  fill: {input_schema: {type: object}, effect: read, command: {argv: [sh, -c, "exec head -c 9000 /dev/zero > full"], limits: {file_size: 1KiB}}}
  stop: {input_schema: {type: object}, on_failure: stop, command: ["false"]}
"#;

fn everything() -> String {
    let large = "x".repeat(100_000);
    let mut calls: Vec<(&str, Value)> = vec![
        ("say", json!({"x": "a"})),
        ("say", json!({ "x": large })),
        ("count", json!({"n": "3", "l": large_list()})),
        ("inside", json!({"p": "/etc/passwd"})),
        ("nobody", json!({})),
        ("say", json!({"y": 1})),
        ("say", json!("no object")),
    ];
    let plain = [
        "flood", "block", "again", "late", "dies", "gone", "unset", "nothing", "tells", "mute",
        "ask", "raw", "leave", "fill", "stop",
    ];
    calls.extend(plain.map(|name| (name, json!({}))));
    calls.push(("count", json!({"n": 1})));
    response(&calls)
}

/// An array as a text, too large for metadata.
fn large_list() -> String {
    format!("[{}1]", "1,".repeat(20_000))
}

/// A server that takes a request and says nothing.
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

/// The schema, which takes no member that it does not name.
fn closed() -> Schema {
    let mut schema = log_schema();
    for found in schema["$defs"].as_object_mut().unwrap().values_mut() {
        if found["properties"].is_object() {
            found["additionalProperties"] = json!(false);
        }
    }
    compile(&schema)
}

fn compile(schema: &Value) -> Schema {
    Schema::compile(schema, Path::new("/")).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

/// The records of a run of everything, and of a second one behind an end that is torn.
fn records() -> Vec<Value> {
    let script = "cat > in; \"$TOOLQ\" run -q --log log.jsonl --max-calls 8 < in > out; printf '{\"seq\":99' >> log.jsonl; \"$TOOLQ\" run -q --log log.jsonl < in > out; cat log.jsonl";
    let tools = TOOLS.replace("URL", &silent_server());
    let ran = Toolq::new()
        .tools(&tools)
        .stdin(everything())
        .shell(script)
        .exits(0);
    json_lines(&ran.stdout)
}

/// An agent that looks and says what is secret, one that has too little to come to an end, one that is not done and ends oddly, a request, and two payments in the middle of which toolq is killed, of which no probe knows anything.
const INTERRUPTED: &str = r#"
secrets: [WORD]
tools:
  ask:
    input_schema: {type: object}
    retry: {on: [unavailable], backoff: 1ms}
    agent: {endpoint: "${BASE}", model: model-1, tools: [look]}
  poor:
    input_schema: {type: object}
    agent: {endpoint: "${BASE}", model: model-1, tools: [look], budget: {turns: 1}}
  brief:
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

/// The records of a run with an agent that is killed, resumed, resolved and resumed.
fn records_of_an_interruption() -> Vec<Value> {
    // The first answer breaks off when it has told what it took.
    let usage = json!({"type": "message_start", "message": {"usage": {"input_tokens": 1}}});
    let begun = Step::Say(format!("data: {usage}\n\n"));
    let api = Api::by(
        move |number, body| match body["messages"].as_array().map(Vec::len) {
            None => ok("done"),
            _ if body["model"] == "model-2" => {
                ok(message(json!(uses(&[("look", json!({}))])), "odd"))
            }
            Some(1) if number == 0 => Act::Speak(vec![begun.clone()]),
            Some(1) => calls(&[("look", json!({}))]),
            Some(_) => text("all is well"),
        },
    );
    let resume = "\"$TOOLQ\" run -q --resume --log log in >> out";
    let resolve =
        |n| format!("\"$TOOLQ\" -q log resolve toolu_{n} log --done --result x --error --note y");
    let script = format!(
        "cat > in; sh -c 'echo $$ > pid; exec \"$TOOLQ\" run -q --log log in'; {resume}; test $? = 3; {} && {} && {{ {resume}; test $? = 3; }} && cat log",
        resolve(2),
        resolve(3),
    );
    let none = || json!({});
    let pay = |n: u32| ("pay", json!({ "n": n }));
    let asked = [
        ("ask", none()),
        ("send", none()),
        pay(0),
        pay(1),
        ("poor", none()),
        ("brief", none()),
    ];
    let asked = response(&asked);
    let ran = Toolq::new()
        .tools(INTERRUPTED)
        .env("BASE", &api.url)
        .env("WORD", "all is well")
        .stdin(asked)
        .shell(&script)
        .exits(0);
    json_lines(&ran.stdout)
}

#[test]
fn every_record_of_every_type_has_the_published_form() {
    let schema = closed();
    let records = [records(), records_of_an_interruption()].concat();
    for record in &records {
        let problems = schema.details(record);
        assert!(problems.is_empty(), "{record}\n{problems:#?}");
    }
    let types: BTreeSet<&str> = records
        .iter()
        .map(|record| record["type"].as_str().unwrap())
        .collect();
    let written = [
        "describe_end",
        "describe_start",
        "model_response",
        "probe_end",
        "probe_start",
        "recovered",
        "resolve",
        "session",
        "session_end",
        "tool_call",
        "tool_in_doubt",
        "tool_result",
        "tool_skipped",
        "tool_start",
        "turn",
    ];
    assert_eq!(types, BTreeSet::from(written));
    let statuses: BTreeSet<&str> = records
        .iter()
        .filter_map(|record| record["metadata"]["status"].as_str())
        .collect();
    assert!(statuses.len() >= 12, "{statuses:?}");
    let session = records.iter().rfind(|record| record["type"] == "session");
    let metadata = &session.unwrap()["metadata"];
    assert!(
        metadata["resumes"].is_string() && metadata["epoch"] == 3,
        "{metadata}"
    );
    assert_every_member_was_seen(&records);
}

/// No member of any metadata is published that no run writes.
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

/// What says nothing is no schema: other forms are refused.
#[test]
fn other_forms_are_refused() {
    let schema = compile(&log_schema());
    let records = records();
    let of_type = |kind: &str| {
        let found = records.iter().find(|record| record["type"] == kind);
        found.unwrap().clone()
    };
    let mut refused = 0;
    for kind in [
        "session",
        "turn",
        "describe_start",
        "describe_end",
        "tool_call",
        "tool_start",
        "tool_result",
        "session_end",
    ] {
        let good = of_type(kind);
        assert!(schema.details(&good).is_empty());
        for member in [
            "seq",
            "id",
            "parentId",
            "timestamp",
            "type",
            "metadata",
            "prev",
            "crc",
        ] {
            let mut bad = good.clone();
            bad.as_object_mut().unwrap().remove(member);
            assert!(!schema.details(&bad).is_empty(), "{kind} without {member}");
            bad[member] = json!([1.5]);
            assert!(
                !schema.details(&bad).is_empty(),
                "{kind} with another {member}"
            );
            refused += 2;
        }
        let mut bad = good;
        bad["metadata"] = json!({});
        assert!(!schema.details(&bad).is_empty(), "{kind} without metadata");
        refused += 1;
    }
    assert_eq!(refused, 8 * 17);
}

/// A newer toolq may add members and types.
#[test]
fn what_is_added_is_taken() {
    let schema = compile(&log_schema());
    let mut log = Forge::new();
    let session = log.session();
    log.add(
        "turn",
        Some(session),
        &Value::Null,
        &json!({"turn": 0, "mood": "good"}),
    );
    log.add(
        "tool_dreamt",
        Some(session),
        &json!([1]),
        &json!({"new": true}),
    );
    for record in json_lines(log.text()).iter().skip(1) {
        let problems = schema.details(record);
        assert!(problems.is_empty(), "{record}\n{problems:#?}");
    }
}
