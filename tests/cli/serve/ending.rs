//! How calls and the server end.

use std::io::Write as _;
use std::{fs, thread};

use crate::serve::client::{Client, EndedServer, TOOLS, modern, text_of};
use crate::support::CliSandbox;
use crate::support::waiting::{wait_until, wait_until_gone};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

#[test]
fn failures_in_a_row_pause_a_tool_across_calls() {
    let mut client = Client::initialized(&[]);
    let results = [1, 2, 3].map(|id| client.result(id, "fail", &json!({})).0);
    assert!(results[1].contains("no cheese"), "{results:?}");
    assert!(!results[2].contains("no cheese"), "{results:?}");
}

/// Calls end with all their processes, and the log is closed.
#[test]
fn the_end_of_input_ends_what_still_runs() {
    let mut client = Client::initialized(&[]);
    client.call("long", "hang", &json!({}));
    let pids = client.pids(2);
    let ended = client.leave();
    wait_until_gone(&pids);
    assert_eq!(ended.rest.len(), 1, "{:?}", ended.rest);
    assert!(
        ended.rest[0].contains("the client has left"),
        "{:?}",
        ended.rest
    );
    let log = ended.log();
    assert_eq!(log.last().unwrap()["type"], "session_end");
}

#[test]
fn calls_that_came_before_the_end_of_input_are_answered() {
    let mut client = Client::initialized(&[]);
    client.call(1, "echo", &json!({"text": "hi"}));
    client.call(2, "pay", &json!({"file": "tools.yaml"}));
    let ended = client.leave();
    assert_eq!(ended.rest.len(), 2, "{:?}", ended.rest);
}

#[test]
fn a_signal_ends_the_server_and_answers_its_calls() {
    let mut client = Client::initialized(&[]);
    client.call(1, "hang", &json!({}));
    let pids = client.pids(2);
    kill_process(Pid::from_child(&client.server), Signal::TERM).unwrap();
    let (text, is_error) = text_of(&client.receive());
    assert!(is_error && text.contains("stopped from outside"), "{text}");
    let ended = client.wait();
    assert_eq!(ended.code, Some(143), "{}", ended.stderr);
    wait_until_gone(&pids);
}

/// Calls end with all their processes, and the log is closed.
#[test]
fn a_client_that_goes_away_takes_its_calls_with_it() {
    let sandbox = CliSandbox::new().tools(TOOLS);
    let mut server = sandbox.command(&["serve"]).spawn().unwrap();
    let request = modern(&json!({"name": "hang", "arguments": {}}));
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": request});
    writeln!(server.stdin.as_mut().unwrap(), "{request}").unwrap();
    let read = || fs::read_to_string(sandbox.path().join("pids")).unwrap_or_default();
    wait_until("the tool has started", || read().lines().count() == 2);
    let pids: Vec<String> = read().lines().map(str::to_owned).collect();
    // stdin stays open.
    drop(server.stdout.take());
    wait_until_gone(&pids);
    assert_eq!(server.wait().unwrap().code(), Some(74));
}

#[test]
fn a_client_that_goes_away_before_its_first_call_is_exit_74_without_a_message() {
    let sandbox = CliSandbox::new().tools(TOOLS);
    let mut server = sandbox.command(&["serve", "-q"]).spawn().unwrap();
    drop(server.stdout.take());
    // stdin stays open.
    let stdin = server.stdin.take();
    let ended = server.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(74));
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    drop(stdin);
}

#[test]
fn a_stdout_that_cannot_be_written_is_exit_74_with_the_reason() {
    let sandbox = CliSandbox::new().tools(TOOLS);
    let list =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": modern(&json!({}))});
    let mut command = sandbox.command(&["serve"]);
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut server = command.stdout(full).spawn().unwrap();
    // stdin stays open.
    let mut stdin = server.stdin.take().unwrap();
    writeln!(stdin, "{list}").unwrap();
    let ended = server.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr);
    let reason = "stdout can't be written: No space left on device";
    assert_eq!(ended.status.code(), Some(74), "{stderr}");
    assert!(stderr.contains(reason), "{stderr}");
    drop(stdin);
}

/// It can be asked to end, and neither takes memory without end nor reads what it can't answer.
#[test]
fn a_client_that_never_reads_keeps_no_server_alive() {
    let sandbox = CliSandbox::new().tools(TOOLS);
    let mut server = sandbox.command(&["serve"]).spawn().unwrap();
    let mut stdin = server.stdin.take().unwrap();
    let request =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": modern(&json!({}))});
    let writer = thread::spawn(move || while writeln!(stdin, "{request}").is_ok() {});
    let pid = Pid::from_child(&server);
    let stdout = server.stdout.take().unwrap();
    wait_until("the pipe is full", || {
        rustix::io::ioctl_fionread(&stdout).unwrap() > 60_000
    });
    kill_process(pid, Signal::TERM).unwrap();
    // 143 if everything still fitted into the pipe.
    let code = server.wait().unwrap().code();
    assert!(matches!(code, Some(74 | 143)), "{code:?}");
    writer.join().unwrap();
}

/// The next server begins without it.
#[test]
#[cfg(target_os = "linux")]
fn a_killed_server_leaves_no_process_and_its_write_in_doubt() {
    let arguments = ["serve", "--log", "serve.jsonl"];
    let sandbox = CliSandbox::new().tools(TOOLS);
    let mut client = Client::start(sandbox, &arguments);
    client.initialize();
    client.call(1, "pay", &json!({"file": "paid"}));
    let pids = client.pids(1);
    kill_process(Pid::from_child(&client.server), Signal::KILL).unwrap();
    wait_until_gone(&pids);
    let killed = client.wait();
    assert_eq!(killed.code, None);

    let mut client = Client::start(killed.sandbox, &arguments);
    client.initialize();
    assert_eq!(client.result(1, "echo", &json!({"text": "hi"})).0, "hi");
    let ended = client.leave();
    let log = fs::read_to_string(ended.sandbox.path().join("serve.jsonl")).unwrap();
    let starts = log.lines().filter(|line| {
        line.contains(r#""type":"tool_start""#) && line.contains(r#""tool_name":"pay""#)
    });
    assert_eq!(starts.count(), 1);
}

#[test]
fn a_client_that_calls_nothing_leaves_no_log() {
    let logs = |ended: &EndedServer| {
        let dir = fs::read_dir(ended.sandbox.path().join("state/toolq/sessions"));
        dir.map_or(0, Iterator::count)
    };
    let mut client = Client::serve(&["-q"]);
    client.initialize();
    client.ask(1, "tools/list", &json!({}));
    assert_eq!(logs(&client.leave()), 0);
    let mut client = Client::serve(&["-q"]);
    client.initialize();
    client.result(1, "echo", &json!({"text": "a"}));
    assert_eq!(logs(&client.leave()), 1);
    let mut client = Client::serve(&["-q", "--log", "own.jsonl"]);
    client.initialize();
    let ended = client.leave();
    assert!(ended.sandbox.path().join("own.jsonl").exists());
}
