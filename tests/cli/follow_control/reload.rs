//! `{"type":"reload"}`: tools.yaml is read again between turns.

use std::fs;
use std::rc::Rc;

use serde_json::{Value, json};

use crate::follow_control::host::Host;
use crate::support::CliSandbox;
use crate::support::shell_server::shell_server;
use crate::support::waiting::{is_running, wait_until, wait_until_gone};

fn tools(text: &str, more: &str) -> String {
    format!(
        "version: 1\ntools:\n  say: {{input_schema: {{type: object}}, effect: read, command: [echo, {text}]}}\n{more}"
    )
}

#[test]
fn new_definitions_come_into_force_between_turns() {
    let mut host = Host::start(&tools("one", ""), &[]);
    host.announce(json!({"wait": {"effect": "read"}}));
    host.turn("old", &[("wait", json!({})), ("say", json!({}))]);
    let call = host.read_type("call");
    let more = "  new: {input_schema: {type: object}, effect: read, command: [echo, new]}\n";
    let path = host.dir.join("tools.yaml");
    fs::write(&path, tools("two", more)).unwrap();
    // A file that was only written changes nothing.
    host.turn("same", &[("say", json!({}))]);
    assert_eq!(host.read_type("answer")["message"][0]["content"], "one");
    host.send(r#"{"type":"reload","id":"r"}"#);
    assert_eq!(host.read(), json!({"type": "ready", "id": "r"}));
    host.turn("new", &[("say", json!({})), ("new", json!({}))]);
    let answer = host.read_type("answer");
    assert_eq!(answer["message"][0]["content"], "two");
    assert_eq!(answer["message"][1]["content"], "new");
    host.answer_call(&call, &json!("waited"));
    let answer = host.read_type("answer");
    assert_eq!(answer["message"][0]["content"], "waited");
    assert_eq!(answer["message"][1]["content"], "one");
    assert_eq!(host.end().code, 0);
}

#[test]
fn a_broken_file_changes_nothing() {
    let mut host = Host::start(&tools("one", ""), &[]);
    host.announce(json!({"mine": {"effect": "read"}}));
    let path = host.dir.join("tools.yaml");
    for (text, words, line) in [
        (
            tools(
                "two",
                "  bad: {input_schema: {type: object}, command: [echo], timeout: soon}\n",
            ),
            "soon",
            json!(4),
        ),
        (
            tools(
                "two",
                "  mine: {input_schema: {type: object}, command: [echo]}\n",
            ),
            "declared in tools.yaml, too",
            json!(null),
        ),
        (
            tools("two", "concurrency: 3\n"),
            "`concurrency` can't change",
            json!(null),
        ),
        ("tools: [".to_owned(), "tools.yaml", json!(1)),
    ] {
        fs::write(&path, text).unwrap();
        host.send(r#"{"type":"reload"}"#);
        let error = host.read_type("error");
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{message}");
        assert!(
            message.ends_with("; the tools stay as they were"),
            "{message}"
        );
        assert_eq!(error["error"]["problems"][0]["line"], line, "{error}");
    }
    host.turn("a", &[("say", json!({})), ("mine", json!({}))]);
    let call = host.read_type("call");
    host.answer_call(&call, &json!("mine"));
    let answer = host.read_type("answer");
    assert_eq!(answer["message"][0]["content"], "one");
    assert_eq!(answer["message"][1]["content"], "mine");
    assert_eq!(host.end().code, 3);
}

impl Host {
    fn start_with(tools: &str, program: &str, text: &str) -> Self {
        let sandbox = CliSandbox::new().tools(tools).program(program, text);
        Self::start_in(&Rc::new(sandbox), &[], &[])
    }

    /// Replaces tools.yaml, and has it read again.
    fn reload(&mut self, tools: &str) {
        fs::write(self.dir.join("tools.yaml"), tools).unwrap();
        self.send(r#"{"type":"reload"}"#);
        self.read_type("ready");
    }

    /// Returns the result of one call, and whether it failed.
    fn result(&mut self, id: &str, tool: &str, input: Value) -> (String, bool) {
        self.turn(id, &[(tool, input)]);
        self.read_result()
    }

    fn read_result(&mut self) -> (String, bool) {
        let answer = self.read_type("answer");
        let result = &answer["message"][0];
        let text = result["content"].as_str().unwrap().to_owned();
        (text, result["is_error"] == true)
    }
}

#[test]
fn included_files_are_read_again() {
    let main = format!("include: [more.yaml]\n{}", tools("one", ""));
    let more = |text: &str| {
        format!(
            "tools:\n  more: {{input_schema: {{type: object}}, effect: read, command: [echo, {text}]}}\n"
        )
    };
    let sandbox = CliSandbox::new()
        .tools(&main)
        .file("more.yaml", more("before"));
    let mut host = Host::start_in(&Rc::new(sandbox), &[], &[]);
    assert_eq!(host.result("a", "more", json!({})).0, "before");
    fs::write(host.dir.join("more.yaml"), more("after")).unwrap();
    host.reload(&main);
    assert_eq!(host.result("b", "more", json!({})).0, "after");
    assert_eq!(host.end().code, 0);
}

/// A changed definition is another tool, so the result of the old one doesn't count.
#[test]
fn calls_share_the_cache_until_the_tool_changes() {
    let tools = |word: &str| {
        format!(
            "tools:\n  look: {{effect: read, cache: {{for: 1h}}, input_schema: {{type: object}}, command: [sh, -c, 'echo x >> ran; wc -l < ran; echo {word}']}}\n"
        )
    };
    let mut host = Host::start(&tools("one"), &[]);
    assert_eq!(host.result("a", "look", json!({})).0, "1\none");
    assert_eq!(host.result("b", "look", json!({})).0, "1\none");
    host.reload(&tools("two"));
    assert_eq!(host.result("c", "look", json!({})).0, "2\ntwo");
    assert_eq!(host.result("d", "look", json!({})).0, "2\ntwo");
}

/// A server that answers with its pid, or first waits for a file.
fn pid_server(begin: &str) -> String {
    let answer = r#"case $line in *'"wait"'*) : > waiting; until [ -e go ]; do sleep 0.01; done ;; esac
    result='{"content":[{"type":"text","text":"'$$'"}]}'"#;
    shell_server(begin, &[("tools/call", answer)])
}

fn two_servers(argument: &str, with_third: bool) -> String {
    let tool = |name: &str| {
        format!(
            "  {name}: {{effect: read, timeout: 100s, input_schema: {{type: object}}, mcp: {{server: {name}, tool: pid}}}}\n"
        )
    };
    let (mut servers, mut tools) = (String::new(), String::new());
    for (name, argument) in [("same", "x"), ("other", argument), ("gone", "x")] {
        if name != "gone" || with_third {
            let server = format!("  {name}: {{command: [./server, {argument}]}}\n");
            servers += &server;
            tools += &tool(name);
        }
    }
    format!("version: 1\nservers:\n{servers}tools:\n{tools}")
}

/// Others keep their connections and what they remember.
#[test]
fn only_servers_that_are_configured_differently_end_once_their_calls_have() {
    let mut host = Host::start_with(&two_servers("one", true), "server", &pid_server(""));
    let pid = |host: &mut Host, tool: &str| host.result("p", tool, json!({})).0;
    let [same, other, gone] = ["same", "other", "gone"].map(|tool| pid(&mut host, tool));
    host.turn("w", &[("other", json!({"wait": true}))]);
    let waiting = host.dir.join("waiting");
    wait_until("the server works", || waiting.exists());
    host.reload(&two_servers("two", false));
    wait_until_gone(&[gone]);
    assert_eq!(pid(&mut host, "same"), same);
    fs::write(host.dir.join("go"), "").unwrap();
    assert_eq!(host.read_result(), (other.clone(), false));
    let restarted = pid(&mut host, "other");
    assert_ne!(restarted, other);
    assert!(!is_running(&other) && is_running(&restarted));
    assert_eq!(host.end().code, 0);
    wait_until_gone(&[same, restarted]);
}

/// A tool whose schema is described by a program with this argument.
fn described(argument: &str, text: &str) -> String {
    let tool = format!(
        "  ask: {{describe: [./describe, {argument}], effect: read, command: [echo, \"{{question}}\"]}}\n"
    );
    tools(text, &tool)
}

#[test]
fn a_description_holds_on_as_long_as_its_program_is_the_same() {
    let describe = "#!/bin/sh\necho \"$1\" >> described\nprintf '{\"description\": \"%s\", \"input_schema\": {\"type\": \"object\", \"properties\": {\"question\": {\"type\": \"string\"}}, \"required\": [\"question\"]}}' \"$1\"\n";
    let mut host = Host::start_with(&described("one", "before"), "describe", describe);
    let why = json!({"question": "why?"});
    assert_eq!(host.result("a", "ask", why.clone()).0, "why?");
    host.reload(&described("one", "after"));
    assert_eq!(host.result("b", "say", json!({})).0, "after");
    let (text, is_error) = host.result("c", "ask", json!({}));
    assert!(is_error && text.contains("/question"), "{text}");
    assert_eq!(
        host.result("d", "ask", why.clone()),
        ("why?".to_owned(), false)
    );
    host.reload(&described("two", "after"));
    let (text, is_error) = host.result("e", "ask", why);
    assert!(is_error && text.contains("came with a reload"), "{text}");
    let described = fs::read_to_string(host.dir.join("described")).unwrap();
    assert_eq!(described, "one\n");
}

/// A server that announces one tool. It is asked at the start, since it isn't in tools.lock.
#[test]
fn what_a_server_without_a_lock_has_announced_holds_on() {
    let with_server = |argument: &str, text: &str| {
        format!(
            "{}servers:\n  s: {{command: [./server, {argument}], startup: 20s}}\n",
            tools(text, "")
        )
    };
    let listed = r#"result='{"tools":[{"name":"note","inputSchema":{"type":"object"}}]}'"#;
    let noted = r#"result='{"content":[{"type":"text","text":"noted"}]}'"#;
    let answers = [("tools/list", listed), ("tools/call", noted)];
    let server = shell_server(r#"echo "$1" >> starts"#, &answers);
    let mut host = Host::start_with(&with_server("one", "before"), "server", &server);
    assert_eq!(host.result("a", "s_note", json!({})).0, "noted");
    host.send(r#"{"type":"list","id":"l","format":"anthropic"}"#);
    let names = host.read_type("list")["tools"].to_string();
    assert!(names.contains("\"s_note\""), "{names}");
    host.reload(&with_server("one", "after"));
    assert_eq!(host.result("b", "say", json!({})).0, "after");
    assert_eq!(host.result("c", "s_note", json!({})).0, "noted");
    host.reload(&with_server("two", "after"));
    assert!(host.result("d", "s_note", json!({})).1);
    let starts = fs::read_to_string(host.dir.join("starts")).unwrap();
    assert_eq!(starts, "one\n");
    let ended = host.end();
    let warning = "the tools of the server s aren't served until toolq is started again";
    assert!(ended.stderr.contains(warning), "{}", ended.stderr);
}

/// A call that was checked before, and whose turn comes after its server is gone.
#[test]
fn a_late_call_does_not_start_a_server_that_is_gone() {
    let with_writer = |servers: &str| {
        format!(
            "{servers}  pay:
    input_schema: {{type: object}}
    timeout: 100s
    command: [sh, -c, ': > paying; until [ -e go ]; do sleep 0.01; done; echo paid']
"
        )
    };
    let tools = with_writer(&two_servers("one", true));
    let mut host = Host::start_with(&tools, "server", &pid_server("echo start >> starts"));
    let servers = ["other", "gone"].map(|tool| host.result("p", tool, json!({})).0);
    host.turn("w", &[("pay", json!({}))]);
    let paying = host.dir.join("paying");
    wait_until("it pays", || paying.exists());
    host.turn("o", &[("other", json!({}))]);
    host.turn("g", &[("gone", json!({}))]);
    host.reload(&with_writer(&two_servers("two", false)));
    wait_until_gone(&servers);
    fs::write(host.dir.join("go"), "").unwrap();
    let mut answers: Vec<Value> = (0..3).map(|_| host.read_type("answer")).collect();
    answers.sort_by_key(|answer| answer["id"].to_string());
    let [gone, other, pay] = &answers[..] else {
        panic!("{answers:?}");
    };
    assert_eq!(pay["message"][0]["content"], "paid");
    for answer in [gone, other] {
        let text = answer["message"][0]["content"].as_str().unwrap();
        assert!(text.contains("doesn't have this server"), "{text}");
    }
    assert!(!host.result("n", "other", json!({})).1);
    let starts = fs::read_to_string(host.dir.join("starts")).unwrap();
    assert_eq!(starts.lines().count(), 3);
}
