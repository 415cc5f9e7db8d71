//! `toolq log verify`, and which files the other commands accept as logs.

use std::fs;

use serde_json::json;

use crate::log::log_builder::LogBuilder;
use crate::log::sandbox_with_five_calls;
use crate::support::{CliOutput, CliSandbox, model_response, skip};

/// Verifies a log with this content. Returns stdout and the exit code.
fn run_verify(bytes: &[u8]) -> (String, i32) {
    let ran = CliSandbox::new()
        .file("log.jsonl", bytes)
        .run(&["log", "verify", "log.jsonl"]);
    assert_eq!(ran.stderr, "");
    (ran.stdout, ran.code)
}

fn sample_log() -> String {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    log.finished_call(turn, "say", "ok", 1);
    log.session_end(session);
    log.text().to_owned()
}

#[test]
fn the_log_of_a_run_is_intact() {
    let script = "\"$TOOLQ\" run -q > /dev/null; \"$TOOLQ\" log verify";
    let ran: CliOutput = sandbox_with_five_calls().run_shell(script).assert_exit(0);
    let verdict = "ok: 16 records, 1 session, 5 calls\n";
    assert!(ran.stdout.ends_with(verdict), "{}", ran.stdout);
}

/// Verifies every kind of blob: a record's content, the full text of truncated output, and an input before coercion.
#[test]
fn every_kind_of_blob_is_verified() {
    let tools = r#"
tools:
  large: {input_schema: {type: object}, effect: read, max_output: 200KiB, command: [sh, -c, "head -c 100000 /dev/zero | tr '\\0' x"]}
  truncated: {input_schema: {type: object}, effect: read, max_output: 1KiB, command: [seq, "1", "2000"]}
  list: {input_schema: {type: object, properties: {l: {type: array}}}, effect: read, command: ["true"]}
"#;
    let list = format!("[{}1]", "1,".repeat(20_000));
    for (call, line) in [
        (("large", json!({})), 5),
        (("truncated", json!({})), 5),
        (("list", json!({ "l": list })), 3),
    ] {
        let toolq = CliSandbox::new()
            .tools(tools)
            .stdin(model_response(&[call]));
        // Blobs are found next to the log, wherever the log is moved.
        let script = "\"$TOOLQ\" run -q --log log > /dev/null; mkdir a; mv log log.d a; \"$TOOLQ\" log verify a/log";
        let ran = toolq.run_shell(script).assert_exit(0);
        assert_eq!(
            ran.stdout,
            "a/log: ok: 6 records, 1 session, 1 call, 1 file\n"
        );
        let dir = ran.dir.path().join("a/log.d");
        let blob = fs::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
        let verdict = || {
            let mut verify = std::process::Command::new(env!("CARGO_BIN_EXE_toolq"));
            verify
                .args(["log", "verify", "a/log"])
                .current_dir(ran.dir.path());
            String::from_utf8(verify.output().unwrap().stdout).unwrap()
        };
        let mut bytes = fs::read(&blob).unwrap();
        bytes[500] ^= 1;
        fs::write(&blob, bytes).unwrap();
        let prefix = format!(
            "a/log: line {line}: the file {}",
            blob.file_name().unwrap().display()
        );
        let output = verdict();
        assert!(
            output.starts_with(&prefix) && output.contains("doesn't match its SHA-256"),
            "{output}"
        );
        fs::remove_file(&blob).unwrap();
        let output = verdict();
        assert!(
            output.starts_with(&prefix) && output.contains("can't be read: No such file"),
            "{output}"
        );
    }
}

/// The report names the first corrupt line and its problem.
#[test]
fn the_first_corrupt_line_is_reported() {
    let intact = sample_log();
    let lines: Vec<&str> = intact.split_inclusive('\n').collect();
    assert_eq!(run_verify(intact.as_bytes()).1, 0);
    let without = |missing: usize| [&lines[..missing], &lines[missing + 1..]].concat().concat();
    let swapped = [lines[0], lines[2], lines[1], lines[3], lines[4], lines[5]].concat();
    let duplicated = [&lines[..3], &lines[2..]].concat().concat();
    let flipped = intact.replace("\"say\"", "\"pay\"");
    let nul = format!("{}{}{}", lines[0], "\0".repeat(100), lines[1..].concat());
    for (damaged, expected) in [
        (without(2), "line 3: expected record 2, found 3"),
        (swapped, "line 2: expected record 1, found 2"),
        (duplicated, "line 4: expected record 3, found 2"),
        (flipped, "line 3: the line doesn't match its checksum"),
        (nul, "line 2: "),
        (
            intact[..intact.len() - 9].to_owned(),
            "line 6: the record is torn",
        ),
        (intact.replace("toolq", "tool\u{fffd}"), "line 1: "),
        (String::new(), "the file is empty"),
    ] {
        let (text, code) = run_verify(damaged.as_bytes());
        assert!(
            text.starts_with(&format!("log.jsonl: {expected}")),
            "{expected}: {text}"
        );
        assert_eq!(code, 4);
    }
}

/// Additions of a newer minor version are ignored, and a clock that goes backwards isn't corruption.
#[test]
fn newer_members_and_clock_steps_are_not_corruption() {
    let mut log = LogBuilder::new();
    let session = log.session_with_format(&json!({"major": 1, "minor": 7}));
    log.timestamp -= 3_600_000;
    let turn = log.turn(session, 0);
    log.finished_call(turn, "say", "ok", 1);
    log.add_record("tool_future", Some(turn), &json!("zzz"), &json!({"new": 1}));
    let (text, code) = run_verify(log.text().as_bytes());
    assert_eq!(
        (text.as_str(), code),
        (
            "log.jsonl: ok: 6 records, 1 session, 1 call; the last session has no end; in the newer format 1.7\n",
            0
        )
    );
    let mut newer = LogBuilder::new();
    newer.session_with_format(&json!({"major": 2, "minor": 0}));
    assert_eq!(run_verify(newer.text().as_bytes()).1, 4);
    log.add_record(
        "tool_future",
        Some(turn),
        &json!(1),
        &json!({"must_understand": true}),
    );
    assert_eq!(run_verify(log.text().as_bytes()).1, 4);
}

/// Intact checksums don't make a log valid: its records must also be in an order that toolq can write.
#[test]
fn an_impossible_record_sequence_is_reported() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let call = log.call(turn, "pay", &json!({}));
    log.start(call, "pay", 1);
    let session = log.session();
    log.start(call, "pay", 2);
    log.session_end(session);
    let (text, code) = run_verify(log.text().as_bytes());
    assert!(text.starts_with("log.jsonl: line 6: "), "{text}");
    assert!(text.contains("starts again"), "{text}");
    assert_eq!(code, 4);
}

/// With the line of the record and the name of the file.
#[test]
fn changed_blobs_are_reported() {
    let large = "x".repeat(100_000);
    let toolq = || {
        let call = json!({"type": "tool_use", "id": "a", "name": "say", "input": {"x": large}});
        CliSandbox::new()
            .tools(crate::log::TOOLS)
            .stdin(call.to_string())
    };
    let verify_after = |damage: &str| {
        let script = format!(
            "\"$TOOLQ\" run -q --log log.jsonl > out; {damage}; \"$TOOLQ\" log verify log.jsonl"
        );
        toolq().run_shell(&script)
    };
    let good = verify_after("true").assert_exit(0);
    assert!(good.stdout.contains("file"), "{}", good.stdout);
    for (damage, expected) in [
        (
            "for f in log.jsonl.d/*; do printf y >> $f; done",
            "bytes, but ",
        ),
        (
            "for f in log.jsonl.d/*; do tr x y < $f > other; cat other > $f; done",
            "doesn't match its SHA-256",
        ),
        ("rm -r log.jsonl.d", "can't be read"),
        (
            "for f in log.jsonl.d/*; do mv $f other; ln -s $PWD/other $f; done",
            "can't be read",
        ),
    ] {
        let ran = verify_after(damage).assert_exit(4);
        assert!(ran.stdout.starts_with("log.jsonl: line "), "{}", ran.stdout);
        assert!(ran.stdout.contains(expected), "{expected}: {}", ran.stdout);
    }
}

#[test]
fn each_log_gets_one_line() {
    let ran = CliSandbox::new()
        .file("good.jsonl", sample_log())
        .file("bad.jsonl", "{}\n")
        .run(&[
            "log",
            "verify",
            "bad.jsonl",
            "none.jsonl",
            "good.jsonl",
            ".",
        ])
        .assert_exit(4);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(
        lines[0],
        "bad.jsonl: line 1: this isn't a session log record"
    );
    assert_eq!(
        lines[1],
        "none.jsonl: the session log none.jsonl doesn't exist"
    );
    assert_eq!(lines[2], "good.jsonl: ok: 6 records, 1 session, 1 call");
    assert!(
        lines[3].starts_with(".: the session log . isn't a regular file"),
        "{}",
        lines[3]
    );
    assert_eq!(
        fs::read_dir(ran.dir.path()).unwrap().count(),
        2,
        "verify must not write anything"
    );
}

/// Read-only commands accept any file that the operating system lets them read. Commands that write refuse symbolic
/// links.
#[test]
fn readers_follow_symbolic_links() {
    let tools = "tools: {echo: {input_schema: {type: object}, effect: write, command: [cat]}}";
    let large = model_response(&[("echo", json!({"x": "x".repeat(100_000)}))]);
    let script = r#"mkdir logs; "$TOOLQ" run -q --log logs/a < in > /dev/null; ln -s logs/a link; ln -s loop loop; mkfifo pipe
        "$TOOLQ" log verify link; "$TOOLQ" log show link | grep -c xxxx; "$TOOLQ" log stats link | grep -c echo; "$TOOLQ" log cost link > /dev/null
        "$TOOLQ" run in --log link; echo $?
        for no in loop pipe logs /dev/null; do "$TOOLQ" log show $no; echo $?; done"#;
    let ran = CliSandbox::new()
        .tools(tools)
        .file("in", large)
        .run_shell(script);
    let first = "link: ok: 6 records, 1 session, 1 call, 3 files\n";
    assert!(ran.stdout.starts_with(first), "{}", ran.stdout);
    let rest = &ran.stdout[first.len()..];
    assert_eq!(rest, "3\n1\n4\n4\n4\n4\n4\n", "{}", ran.stderr);
    for expected in [
        "the session log link is a symbolic link",
        "the session log loop can't be opened: Too many levels",
        "the session log pipe isn't a regular file",
        "the session log logs isn't a regular file",
        "the session log /dev/null isn't a regular file",
    ] {
        assert!(ran.stderr.contains(expected), "{expected}\n{}", ran.stderr);
    }
}

/// Another user's log can be read, if the operating system allows it, but not appended to.
#[test]
fn readers_accept_logs_of_other_users() {
    let tools = "tools: {a: {input_schema: {type: object}, command: [cat]}}";
    let toolq = CliSandbox::new()
        .tools(tools)
        .file("in", model_response(&[("a", json!({}))]))
        .file("log.jsonl", sample_log());
    if std::os::unix::fs::chown(toolq.path().join("log.jsonl"), Some(1), None).is_err() {
        return skip("only a superuser can change the owner of a file");
    }
    let script = r#""$TOOLQ" log verify log.jsonl; "$TOOLQ" run --log log.jsonl < in; echo $?"#;
    let ran = toolq.run_shell(script);
    assert!(
        ran.stdout.contains(": ok: ") && ran.stdout.ends_with("\n4\n"),
        "{}",
        ran.stdout
    );
    let error = "error: the session log log.jsonl belongs to another user\n hint: choose another file with `--log FILE`, or turn the log off with `--no-log`\n";
    assert_eq!(ran.stderr, error);
}

/// Hints depend on what the command needs, and use the singular or plural correctly.
#[test]
fn hints_fit_the_command() {
    let intact = sample_log();
    let damaged = |line: usize| {
        let mut lines: Vec<String> = intact.split_inclusive('\n').map(str::to_owned).collect();
        lines[line - 1] = lines[line - 1].replacen("\"id\"", "\"ID\"", 1);
        CliSandbox::new().file("log.jsonl", lines.concat())
    };
    for (line, hint) in [
        (
            2,
            "the record before it is intact: view it with `head -n 1 log.jsonl`",
        ),
        (
            4,
            "the 3 records before it are intact: view them with `head -n 3 log.jsonl`",
        ),
    ] {
        for verb in ["show", "stats", "cost"] {
            let ran = damaged(line)
                .run(&["log", verb, "log.jsonl"])
                .assert_exit(4);
            assert!(ran.stderr.contains(hint), "{}", ran.stderr);
        }
    }
    let resolve = ["log", "resolve", "a", "log.jsonl", "--not-done"];
    let ran = damaged(2).run(&resolve).assert_exit(4);
    insta::assert_snapshot!(ran.stderr, @"
    error: the session log log.jsonl is damaged at line 2: the line doesn't match its checksum
     hint: restore it from a copy: nothing can be appended after the damage at line 2; `toolq log show log.jsonl` shows everything before it
    ");
    let ran = CliSandbox::new().run(&resolve).assert_exit(4);
    insta::assert_snapshot!(ran.stderr, @"
    error: the session log log.jsonl doesn't exist
     hint: `toolq log list` lists the sessions with their ids; `toolq log show --id ID` shows a call
    ");
    let ran = CliSandbox::new()
        .run(&["log", "resolve", "a", "--not-done"])
        .assert_exit(2);
    let hint = " hint: no call is in doubt here\n";
    assert!(ran.stderr.ends_with(hint), "{}", ran.stderr);
}
