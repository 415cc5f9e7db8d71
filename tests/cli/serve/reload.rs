//! tools.yaml is read again while a client is connected.

use std::fs;
use std::io::Read as _;

use crate::serve::client::{Client, text_of};
use crate::support::shell_server::shell_server;
use crate::support::waiting::{is_running, wait_until, wait_until_gone};
use crate::support::{CliSandbox, parse_json_lines};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Definitions before and after a signal. The tool `slow` ends when a file appears.
fn reloadable(word: &str, more: &str) -> String {
    format!(
        "version: 1
tools:
  say: {{effect: read, input_schema: {{type: object}}, command: [echo, {word}]}}
  slow:
    effect: read
    timeout: 100s
    input_schema: {{type: object, properties: {{file: {{type: string}}}}}}
    command: [sh, -c, 'echo $$ >> pids; until [ -e \"$1\" ]; do sleep 0.01; done; echo {word}', --, \"{{file}}\"]
{more}"
    )
}

const RELOADED_TOOL: &str =
    "  new: {effect: read, input_schema: {type: object}, command: [echo, fresh]}\n";

impl Client {
    /// Replaces tools.yaml, and asks the server to read it.
    fn reload(&self, tools: &str) {
        fs::write(self.dir().join("tools.yaml"), tools).unwrap();
        let server = Pid::from_child(&self.server);
        kill_process(server, Signal::USR1).unwrap();
    }

    fn listed_names(&mut self) -> Vec<String> {
        self.send("list", "tools/list", &json!({}));
        let listed = loop {
            let message = self.receive();
            if message["id"] == "list" {
                break message;
            }
        };
        let tools = listed["result"]["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    fn wait_until_listed(&mut self, names: &[&str]) {
        wait_until(&format!("{names:?} are listed"), || {
            self.listed_names() == names
        });
    }

    /// Reads stderr until a line contains `text`, and returns all of it.
    fn stderr_until(&mut self, text: &str) -> String {
        let stderr = self.server.stderr.as_mut().unwrap();
        let (mut read, mut byte) = (Vec::new(), [0]);
        while !String::from_utf8_lossy(&read).contains(text) {
            assert_eq!(stderr.read(&mut byte).unwrap(), 1, "no {text:?} on stderr");
            read.push(byte[0]);
        }
        String::from_utf8(read).unwrap()
    }
}

fn reloading_client(tools: &str) -> Client {
    let sandbox = CliSandbox::new().tools(tools);
    let mut client = Client::start(sandbox, &["serve", "--events", "events.jsonl"]);
    client.initialize();
    client
}

/// A call runs as it was checked, and later ones as tools.yaml says now.
#[test]
fn a_signal_puts_new_definitions_into_force_and_running_calls_keep_theirs() {
    let old = reloadable(
        "before",
        "  old: {effect: read, input_schema: {type: object}, command: [echo, old]}\n",
    );
    let mut client = reloading_client(&old);
    assert_eq!(client.result(1, "say", &json!({})).0, "before");
    client.call(2, "slow", &json!({"file": "go"}));
    client.pids(1);
    client.reload(&reloadable("after", RELOADED_TOOL));
    client.wait_until_listed(&["say", "slow", "new"]);
    assert_eq!(client.result(3, "new", &json!({})).0, "fresh");
    assert_eq!(client.result(4, "say", &json!({})).0, "after");
    let refused = client.ask(5, "tools/call", &json!({"name": "old", "arguments": {}}));
    assert_eq!(refused["error"]["code"], -32602);
    client.create("go");
    assert_eq!(text_of(&client.receive()), ("before".to_owned(), false));
    assert_eq!(client.result(6, "slow", &json!({"file": "go"})).0, "after");
    let ended = client.leave();
    assert_eq!(ended.code, Some(0));
    let note = "tools.yaml was read again; added: new; removed: old; changed: say, slow";
    assert!(ended.stderr.contains(note), "{}", ended.stderr);
    let log = ended.log();
    let changes: Vec<&Value> = log
        .iter()
        .filter(|record| record["type"] == "tools_change")
        .collect();
    let [change] = changes[..] else {
        panic!("{changes:?}");
    };
    let metadata = &change["metadata"];
    assert_eq!(
        (
            &metadata["added"],
            &metadata["removed"],
            &metadata["changed"]
        ),
        (&json!(1), &json!(1), &json!(2))
    );
    assert_ne!(
        metadata["tools"]["sha256"],
        log[0]["metadata"]["tools"]["sha256"]
    );
    let events = fs::read_to_string(ended.sandbox.path().join("events.jsonl")).unwrap();
    let events = parse_json_lines(&events);
    let mut change = events
        .into_iter()
        .find(|event| event["type"] == "tools_changed")
        .unwrap();
    assert!(change["timestamp"].take().is_u64());
    let expected = json!({
        "type": "tools_changed", "timestamp": null, "path": "tools.yaml",
        "added": ["new"], "removed": ["old"], "changed": ["say", "slow"],
    });
    assert_eq!(change, expected);
}

/// A changed definition is another tool, so the result of the old one doesn't count.
#[test]
fn calls_share_the_cache_until_the_tool_changes() {
    let tools = |word: &str| {
        let tool = "{effect: read, cache: {for: 1h}, input_schema: {type: object}, command: [sh, -c, 'echo x >> ran; wc -l < ran; echo WORD']}";
        format!("tools:\n  look: {}\n", tool.replace("WORD", word))
    };
    let mut client = reloading_client(&tools("one"));
    assert_eq!(client.result(1, "look", &json!({})).0, "1\none");
    assert_eq!(client.result(2, "look", &json!({})).0, "1\none");
    client.reload(&tools("two"));
    client.stderr_until("changed: look");
    assert_eq!(client.result(3, "look", &json!({})).0, "2\ntwo");
    assert_eq!(client.result(4, "look", &json!({})).0, "2\ntwo");
}

#[test]
fn included_files_are_read_again() {
    let main = format!("include: [more.yaml]\n{}", reloadable("before", ""));
    let sandbox = CliSandbox::new()
        .tools(&main)
        .file("more.yaml", format!("tools:\n{RELOADED_TOOL}"));
    let mut client = Client::start(sandbox, &["serve"]);
    client.initialize();
    assert_eq!(client.listed_names(), ["say", "slow", "new"]);
    let renamed = RELOADED_TOOL.replace("new", "newer");
    fs::write(client.dir().join("more.yaml"), format!("tools:\n{renamed}")).unwrap();
    client.reload(&main);
    client.wait_until_listed(&["say", "slow", "newer"]);
}

/// The old definitions stay in force, and stderr says why.
#[test]
fn what_cannot_come_into_force_is_said_and_changes_nothing() {
    let mut client = reloading_client(&reloadable("before", ""));
    fs::write(client.dir().join(".env"), "A=1\n").unwrap();
    client.reload("version: 1\ntools:\n  say: {timout: 5s}\n");
    let stderr = client.stderr_until("can't be used; the tools stay as they were");
    assert!(stderr.contains("tools.yaml:3:"), "{stderr}");
    assert_eq!(client.result(1, "say", &json!({})).0, "before");
    for (tools, why) in [
        (
            format!("root: /\n{}", reloadable("after", "")),
            "`root` can't change",
        ),
        (
            format!("concurrency: 99\n{}", reloadable("after", "")),
            "`concurrency` can't change",
        ),
        (
            format!("env_file: .env\n{}", reloadable("after", "")),
            "what `env_file` says can't change",
        ),
        (
            format!("secrets: [PATH]\n{}", reloadable("after", "")),
            "PATH is new",
        ),
        (
            "version: 1\ntools: {a: {input_schema: {type: object}}}\n".to_owned(),
            "no tool is left to serve",
        ),
    ] {
        client.reload(&tools);
        client.stderr_until(why);
        assert_eq!(client.result(1, "say", &json!({})).0, "before");
        assert_eq!(client.listed_names(), ["say", "slow"]);
    }
    client.reload(&reloadable("after", RELOADED_TOOL));
    client.wait_until_listed(&["say", "slow", "new"]);
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
    let sandbox = CliSandbox::new()
        .tools(&two_servers("one", true))
        .program("server", &pid_server(""));
    let mut client = Client::start(sandbox, &["serve"]);
    client.initialize();
    let pid = |client: &mut Client, tool: &str| client.result("p", tool, &json!({})).0;
    let [same, other, gone] = ["same", "other", "gone"].map(|tool| pid(&mut client, tool));
    client.call("w", "other", &json!({"wait": true}));
    let waiting = client.dir().join("waiting");
    wait_until("the server works", || waiting.exists());
    client.reload(&two_servers("two", false));
    client.wait_until_listed(&["same", "other"]);
    wait_until_gone(&[gone]);
    assert_eq!(pid(&mut client, "same"), same);
    client.create("go");
    assert_eq!(text_of(&client.receive()), (other.clone(), false));
    let restarted = pid(&mut client, "other");
    assert_ne!(restarted, other);
    assert!(!is_running(&other) && is_running(&restarted));
    let ended = client.leave();
    ended.log();
    wait_until_gone(&[same, restarted]);
}

/// A tool with a schema of its own words, `describe`d by a program with this argument.
fn described(argument: &str) -> String {
    format!(
        "version: 1
tools:
  say: {{effect: read, input_schema: {{type: object}}, command: [echo, hello]}}
  ask:
    describe: [./describe, {argument}]
    effect: read
    command: [echo, \"{{question}}\"]
"
    )
}

#[test]
fn a_description_holds_on_as_long_as_its_program_is_the_same() {
    let describe = "#!/bin/sh\necho \"$1\" >> described\nprintf '{\"description\": \"%s\", \"input_schema\": {\"type\": \"object\", \"properties\": {\"question\": {\"type\": \"string\"}}, \"required\": [\"question\"]}}' \"$1\"\n";
    let sandbox = CliSandbox::new()
        .tools(&described("one"))
        .program("describe", describe);
    let mut client = Client::start(sandbox, &["serve"]);
    client.initialize();
    assert_eq!(client.listed_names(), ["say", "ask"]);
    let more = RELOADED_TOOL;
    client.reload(&format!("{}{more}", described("one")));
    client.wait_until_listed(&["say", "ask", "new"]);
    let (text, is_error) = client.result(1, "ask", &json!({}));
    assert!(is_error && text.contains("/question"), "{text}");
    let answer = client.result(2, "ask", &json!({"question": "why?"}));
    assert_eq!(answer, ("why?".to_owned(), false));
    client.reload(&described("two"));
    client.wait_until_listed(&["say"]);
    let dir = client.dir().to_owned();
    assert_eq!(fs::read_to_string(dir.join("described")).unwrap(), "one\n");
    let ended = client.leave();
    let warning = "ask isn't served until the server is started again: it has to describe itself";
    assert!(ended.stderr.contains(warning), "{}", ended.stderr);
}

/// A server that announces one tool. It is queried at the start, since it isn't in tools.lock.
fn announcing_server() -> String {
    let listed = r#"result='{"tools":[{"name":"note","inputSchema":{"type":"object"}}]}'"#;
    let noted = r#"result='{"content":[{"type":"text","text":"noted"}]}'"#;
    let answers = [("tools/list", listed), ("tools/call", noted)];
    shell_server(r#"echo "$1" >> starts"#, &answers)
}

#[test]
fn what_a_server_without_a_lock_has_announced_holds_on() {
    let tools = |argument: &str, more: &str| {
        format!(
            "{}servers:\n  s: {{command: [./server, {argument}], startup: 20s}}\n",
            reloadable("word", more)
        )
    };
    let sandbox = CliSandbox::new()
        .tools(&tools("one", ""))
        .program("server", &announcing_server());
    let mut client = Client::start(sandbox, &["serve"]);
    client.initialize();
    assert_eq!(client.listed_names(), ["say", "slow", "s_note"]);
    client.reload(&tools("one", RELOADED_TOOL));
    client.wait_until_listed(&["say", "slow", "new", "s_note"]);
    assert_eq!(client.result(1, "s_note", &json!({})).0, "noted");
    client.reload(&tools("two", ""));
    client.wait_until_listed(&["say", "slow"]);
    let dir = client.dir().to_owned();
    assert_eq!(fs::read_to_string(dir.join("starts")).unwrap(), "one\n");
    let ended = client.leave();
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
    command: [sh, -c, 'echo $$ >> pids; until [ -e go ]; do sleep 0.01; done; echo paid']
"
        )
    };
    let sandbox = CliSandbox::new()
        .tools(&with_writer(&two_servers("one", true)))
        .program("server", &pid_server("echo start >> starts"));
    let mut client = Client::start(sandbox, &["serve"]);
    client.initialize();
    for tool in ["other", "gone"] {
        client.result("p", tool, &json!({}));
    }
    client.call("w", "pay", &json!({}));
    client.pids(1);
    client.call("o", "other", &json!({}));
    client.call("g", "gone", &json!({}));
    // An answer says that the calls before it were received.
    client.ask("ping", "ping", &json!({}));
    client.reload(&with_writer(&two_servers("two", false)));
    client.wait_until_listed(&["same", "other", "pay"]);
    client.create("go");
    let mut answers: Vec<Value> = (0..3).map(|_| client.receive()).collect();
    answers.sort_by_key(|answer| answer["id"].to_string());
    let [gone, other, pay] = &answers[..] else {
        panic!("{answers:?}");
    };
    assert_eq!(text_of(pay), ("paid".to_owned(), false));
    for answer in [gone, other] {
        let (text, is_error) = text_of(answer);
        assert!(
            is_error && text.contains("doesn't have this server"),
            "{text}"
        );
    }
    assert!(!client.result("n", "other", &json!({})).1);
    let starts = fs::read_to_string(client.dir().join("starts")).unwrap();
    assert_eq!(
        starts.lines().count(),
        3,
        "two at first, and one that is new"
    );
    client.leave();
}
