//! Calls that start only after the person at the client said yes, in both eras of the protocol.

use serde_json::{Value, json};

use crate::serve::client::{Client, EndedServer, text_of};
use crate::support::CliSandbox;
use crate::support::waiting::wait_until;

/// `pay` needs an approval, `look` and `note` don't. All add a line to the file `ran`.
const TOOLS: &str = r#"
version: 1
secrets: [TOKEN]
tools:
  pay:
    input_schema: {type: object, properties: {to: {type: string}, amount: {type: integer}}}
    approve: true
    command: {argv: [sh, -c, "echo pay >> ran; echo paid"], env: {TOKEN: "${TOKEN:-}"}}
  note:
    input_schema: {type: object}
    command: [sh, -c, "echo note >> ran; echo noted"]
  look:
    effect: read
    input_schema: {type: object}
    command: [sh, -c, "echo look >> ran; echo seen"]
"#;

const NEEDS_APPROVAL: &str = "needs an approval";

fn serve() -> Client {
    let sandbox = CliSandbox::new().tools(TOOLS).env("TOKEN", "s3cr3t-canary");
    Client::start(sandbox, &["serve", "-q"])
}

/// Begins as a client of the legacy era with these capabilities.
fn legacy(version: &str, capabilities: &Value) -> Client {
    let mut client = serve();
    let info = json!({"name": "desk", "version": "1"});
    let params =
        json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": info});
    client.ask("init", "initialize", &params);
    client
}

fn eliciting() -> Client {
    legacy("2025-11-25", &json!({"elicitation": {}}))
}

/// Makes a call of `pay`, and returns the server's question.
fn question(client: &mut Client, id: u64) -> Value {
    client.call(id, "pay", &json!({"amount": 5}));
    let question = client.receive();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    question
}

fn reply(client: &mut Client, question: &Value, result: &Value) {
    let reply = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
    client.send_line(&reply.to_string());
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"approve": true}})
}

fn ran(ended: &EndedServer) -> String {
    std::fs::read_to_string(ended.sandbox.path().join("ran")).unwrap_or_default()
}

/// Returns `[decision, by, client, reason]` of the approvals in the log, which must come before the starts that need them.
fn approvals(ended: &EndedServer) -> Vec<Value> {
    let log = ended.log();
    let is = |record: &Value, kind: &str| {
        record["type"] == kind && record["metadata"]["tool_name"] == "pay"
    };
    let mut unused = 0;
    for record in &log {
        unused += i32::from(is(record, "approval") && record["metadata"]["decision"] == "yes");
        unused -= i32::from(is(record, "tool_start"));
        assert!(unused >= 0, "a start before its yes: {record}");
    }
    let approvals = log.iter().filter(|record| record["type"] == "approval");
    let fields = approvals.map(|record| {
        let metadata = &record["metadata"];
        ["decision", "by", "client", "reason"].map(|key| metadata[key].clone())
    });
    fields.map(|fields| json!(fields)).collect()
}

#[test]
fn a_client_that_can_ask_is_asked_and_a_yes_starts_the_call() {
    for version in ["2025-06-18", "2025-11-25"] {
        let mut client = legacy(version, &json!({"elicitation": {"form": {}}}));
        let hostile = "a\u{1b}[2Kb\u{202e} s3cr3t-canary";
        client.call(1, "pay", &json!({"to": hostile}));
        let question = client.receive();
        let message = question["params"]["message"].as_str().unwrap();
        assert!(message.starts_with("Approve pay (write)?"), "{message}");
        assert!(message.contains("echo paid"), "{message}");
        assert!(message.contains("[masked]"), "{message}");
        for hidden in ['\u{1b}', '\u{202e}'] {
            assert!(!message.contains(hidden), "{message}");
        }
        assert!(!message.contains("canary"), "{message}");
        let schema = &question["params"]["requestedSchema"];
        assert_eq!(schema["properties"]["approve"]["type"], "boolean");
        assert!(!client.dir().join("ran").exists());
        reply(&mut client, &question, &yes());
        let answer = client.receive();
        assert_eq!(
            (&answer["id"], text_of(&answer).0.as_str()),
            (&json!(1), "paid")
        );
        let ended = client.leave();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(approvals(&ended), [json!(["yes", "client", "desk", null])]);
    }
}

/// What a person says later counts for the same values, which name the call whatever client asks.
#[test]
fn a_call_that_runs_once_can_be_approved_later() {
    let tools = TOOLS.replace(
        "    approve: true\n",
        "    approve: true\n    once: [amount]\n",
    );
    let tools = tools.replace(
        "amount: {type: integer}}}",
        "amount: {type: integer}}, required: [amount]}",
    );
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "desk", "version": "1"}});
    let mut client = Client::start(
        CliSandbox::new().tools(&tools),
        &["serve", "-q", "--log", "log.jsonl"],
    );
    client.ask("init", "initialize", &params);
    let log = client.dir().join("log.jsonl");
    let approvals = |arguments: &[&str]| {
        let log = ["--log", log.to_str().unwrap()];
        let ran = CliSandbox::new().run(&[&["approvals"], arguments, &log].concat());
        ran.assert_exit(0).stdout
    };
    for (id, (amount, words, decision)) in (1..).zip([
        (5, NEEDS_APPROVAL, "approve"),
        (6, NEEDS_APPROVAL, "deny"),
        (5, "paid", ""),
        (6, "Denied", ""),
        (5, "already done", ""),
    ]) {
        client.call(id, "pay", &json!({"amount": amount}));
        let text = text_of(&client.receive()).0;
        assert!(text.contains(words), "{amount}: {text}");
        if !decision.is_empty() {
            let mut waiting = Value::Null;
            wait_until("the question is noted", || {
                waiting = serde_json::from_str(&approvals(&["--format", "json"])).unwrap();
                waiting[0]["id"].is_string()
            });
            approvals(&[decision, waiting[0]["id"].as_str().unwrap()]);
        }
    }
    assert_eq!(ran(&client.leave()), "pay\n");
}

#[test]
fn anything_but_a_yes_runs_nothing() {
    let denied = |reason: Value| Some(json!(["no", "client", "desk", reason]));
    let mut client = eliciting();
    let cases = [
        (
            json!({"action": "accept", "content": {"approve": false, "reason": "too much"}}),
            "too much",
            denied(json!("too much")),
        ),
        (
            json!({"action": "accept", "content": {"approve": "true"}}),
            "Denied",
            denied(Value::Null),
        ),
        (json!({"action": "accept"}), "Denied", denied(Value::Null)),
        (json!({"action": "decline"}), "Denied", denied(Value::Null)),
        (json!({"action": "cancel"}), NEEDS_APPROVAL, None),
        (json!({"action": 7}), NEEDS_APPROVAL, None),
        (json!("yes"), NEEDS_APPROVAL, None),
    ];
    let mut expected = Vec::new();
    for (id, (said, words, record)) in (1..).zip(cases) {
        let question = question(&mut client, id);
        reply(&mut client, &question, &said);
        let (text, is_error) = text_of(&client.receive());
        assert!(is_error && text.contains(words), "{said}: {text}");
        expected.extend(record);
    }
    let asked = question(&mut client, 100);
    let error =
        json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}});
    client.send_line(&error.to_string());
    assert!(text_of(&client.receive()).0.contains(NEEDS_APPROVAL));
    // A second reply to a question is ignored.
    reply(&mut client, &asked, &yes());
    assert_eq!(client.result(101, "look", &json!({})).0, "seen");
    let ended = client.leave();
    assert_eq!(ran(&ended), "look\n");
    assert_eq!(approvals(&ended), expected);
}

#[test]
fn a_client_that_cannot_ask_is_told_that_an_approval_is_needed() {
    for (version, capabilities) in [
        ("2025-11-25", json!({})),
        ("2025-11-25", json!({"elicitation": {"url": {}}})),
        ("2025-11-25", json!({"elicitation": true})),
        ("2025-03-26", json!({"elicitation": {}})),
    ] {
        let mut client = legacy(version, &capabilities);
        let (text, is_error) = client.result(1, "pay", &json!({}));
        assert!(is_error && text.contains(NEEDS_APPROVAL), "{text}");
        let ended = client.leave();
        assert_eq!((ran(&ended).as_str(), approvals(&ended).len()), ("", 0));
    }
}

/// A call that waits for a person must not keep other calls waiting.
#[test]
fn a_call_that_waits_for_an_approval_gives_way() {
    let mut client = eliciting();
    let first = question(&mut client, 1);
    assert_eq!(client.result(2, "look", &json!({})).0, "seen");
    assert_eq!(client.result(3, "note", &json!({})).0, "noted");
    let second = question(&mut client, 4);
    reply(&mut client, &second, &yes());
    assert_eq!(client.receive()["id"], 4);
    reply(&mut client, &first, &yes());
    assert_eq!(client.receive()["id"], 1);
    let ended = client.leave();
    assert_eq!(ran(&ended), "look\nnote\npay\npay\n");
    assert_eq!(approvals(&ended).len(), 2);
}

/// The call isn't executed, and a later yes starts nothing.
#[test]
fn a_call_that_is_canceled_takes_its_question_back() {
    let mut client = eliciting();
    let question = question(&mut client, 1);
    client.send_line(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    );
    let withdrawn = client.receive();
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    reply(&mut client, &question, &yes());
    assert_eq!(client.result(2, "look", &json!({})).0, "seen");
    let ended = client.leave();
    assert_eq!(
        (ran(&ended).as_str(), approvals(&ended).len()),
        ("look\n", 0)
    );
}

#[test]
fn a_client_that_leaves_at_a_question_runs_nothing() {
    let mut client = eliciting();
    question(&mut client, 1);
    let ended = client.leave();
    assert_eq!((ran(&ended).as_str(), approvals(&ended).len()), ("", 0));
}

/// Returns the parameters of a call of `pay` in the modern era.
fn modern(arguments: &Value, retry: &Value) -> Value {
    let mut params = json!({"name": "pay", "arguments": arguments, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        "io.modelcontextprotocol/clientInfo": {"name": "modern desk", "version": "1"},
    }});
    for (key, value) in retry.as_object().unwrap() {
        params[key] = value.clone();
    }
    params
}

/// Returns the members of a call that is made again with this reply.
fn retry(required: &Value, said: &Value) -> Value {
    json!({"inputResponses": {"approval": said}, "requestState": required["result"]["requestState"]})
}

#[track_caller]
fn assert_input_required(answer: &Value) {
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    let request = &result["inputRequests"]["approval"];
    assert_eq!(request["method"], "elicitation/create", "{answer}");
    let message = request["params"]["message"].as_str().unwrap();
    assert!(message.starts_with("Approve pay (write)?"), "{message}");
}

#[test]
fn a_modern_client_makes_the_call_again_with_the_reply() {
    let mut client = serve();
    let five = json!({"amount": 5});
    let required = client.ask(1, "tools/call", &modern(&five, &json!({})));
    assert_input_required(&required);
    let answer = client.ask(2, "tools/call", &modern(&five, &retry(&required, &yes())));
    assert_eq!(text_of(&answer).0, "paid");
    // A yes is for one call.
    let again = client.ask(3, "tools/call", &modern(&five, &retry(&required, &yes())));
    assert_input_required(&again);
    let decline = retry(&again, &json!({"action": "decline"}));
    let answer = client.ask(4, "tools/call", &modern(&five, &decline));
    assert!(text_of(&answer).0.contains("Denied"), "{answer}");
    let ended = client.leave();
    assert_eq!(ran(&ended), "pay\n");
    let by = |decision| json!([decision, "client", "modern desk", null]);
    assert_eq!(approvals(&ended), [by("yes"), by("no")]);
}

/// The person is asked again.
#[test]
fn a_forged_or_foreign_reply_of_a_modern_client_approves_nothing() {
    let mut client = serve();
    let five = json!({"amount": 5});
    let required = client.ask(1, "tools/call", &modern(&five, &json!({})));
    let forged = json!({"inputResponses": {"approval": yes()}, "requestState": "00000000000000000000000000000000"});
    let stateless = json!({"inputResponses": {"approval": yes()}});
    let good = retry(&required, &yes());
    for (id, (arguments, members)) in (2..).zip([
        (&five, &forged),
        (&five, &stateless),
        // What was approved is another call. This uses the state up.
        (&json!({"amount": 6}), &good),
        (&five, &good),
    ]) {
        assert_input_required(&client.ask(id, "tools/call", &modern(arguments, members)));
    }
    let mut unable = modern(&five, &json!({}));
    unable["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let answer = client.ask(9, "tools/call", &unable);
    assert!(text_of(&answer).0.contains(NEEDS_APPROVAL), "{answer}");
    let ended = client.leave();
    assert_eq!((ran(&ended).as_str(), approvals(&ended).len()), ("", 0));
}
