use std::fs;

use serde_json::json;

use crate::forge::Forge;
use crate::ran;
use crate::support::{Ran, Toolq, response, say};

/// What is said of one log of these bytes, and the exit code.
fn verdict(bytes: &[u8]) -> (String, i32) {
    let ran = Toolq::new()
        .file("log.jsonl", bytes)
        .run(&["log", "verify", "log.jsonl"]);
    assert_eq!(ran.stderr, "");
    (ran.stdout, ran.code)
}

fn sample() -> String {
    let mut log = Forge::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    log.ran(turn, "say", "ok", 1);
    log.session_end(session);
    log.text().to_owned()
}

#[test]
fn a_run_is_as_it_was_written() {
    let script = "\"$TOOLQ\" run -q > /dev/null; \"$TOOLQ\" log verify";
    let ran: Ran = ran().shell(script).exits(0);
    let ends = "ok: 16 records, 1 session, 5 calls\n";
    assert!(ran.stdout.ends_with(ends), "{}", ran.stdout);
}

/// FAULTS 114: each file that a line names, wherever it names it: the content, the whole of a cut output, an input before
/// its types were mended.
#[test]
fn a_file_that_is_named_is_as_it_was_written() {
    let tools = r#"
tools:
  much: {input_schema: {type: object}, effect: read, max_output: 200KiB, command: [sh, -c, "head -c 100000 /dev/zero | tr '\\0' x"]}
  cut: {input_schema: {type: object}, effect: read, max_output: 1KiB, command: [seq, "1", "2000"]}
  list: {input_schema: {type: object, properties: {l: {type: array}}}, effect: read, command: ["true"]}
"#;
    let list = format!("[{}1]", "1,".repeat(20_000));
    for (call, line) in [
        (("much", json!({})), 5),
        (("cut", json!({})), 5),
        (("list", json!({ "l": list })), 3),
    ] {
        let toolq = Toolq::new().tools(tools).stdin(response(&[call]));
        // Read from elsewhere, it is found beside its log.
        let script = "\"$TOOLQ\" run -q --log log > /dev/null; mkdir a; mv log log.d a; \"$TOOLQ\" log verify a/log";
        let ran = toolq.shell(script).exits(0);
        assert_eq!(
            ran.stdout,
            "a/log: ok: 6 records, 1 session, 1 call, 1 file\n"
        );
        let folder = ran.dir.path().join("a/log.d");
        let body = fs::read_dir(&folder)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        let verdict = || {
            let mut verify = std::process::Command::new(env!("CARGO_BIN_EXE_toolq"));
            verify
                .args(["log", "verify", "a/log"])
                .current_dir(ran.dir.path());
            String::from_utf8(verify.output().unwrap().stdout).unwrap()
        };
        let mut bytes = fs::read(&body).unwrap();
        bytes[500] ^= 1;
        fs::write(&body, bytes).unwrap();
        let named = format!(
            "a/log: line {line}: the file {}",
            body.file_name().unwrap().display()
        );
        let said = verdict();
        assert!(
            said.starts_with(&named) && said.contains("has other bytes than were written"),
            "{said}"
        );
        fs::remove_file(&body).unwrap();
        let said = verdict();
        assert!(
            said.starts_with(&named) && said.contains("can't be read: No such file"),
            "{said}"
        );
    }
}

/// FAULTS 114: whatever was done to a log, its first broken line is named, and what is wrong with it.
#[test]
fn the_first_broken_line_is_named() {
    let whole = sample();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    assert_eq!(verdict(whole.as_bytes()).1, 0);
    let without = |gone: usize| [&lines[..gone], &lines[gone + 1..]].concat().concat();
    let swapped = [lines[0], lines[2], lines[1], lines[3], lines[4], lines[5]].concat();
    let twice = [&lines[..3], &lines[2..]].concat().concat();
    let flipped = whole.replace("\"say\"", "\"pay\"");
    let nul = format!("{}{}{}", lines[0], "\0".repeat(100), lines[1..].concat());
    for (damaged, said) in [
        (without(2), "line 3: it is record 3, and 2 was to follow"),
        (swapped, "line 2: it is record 2, and 1 was to follow"),
        (twice, "line 4: it is record 2, and 3 was to follow"),
        (flipped, "line 3: its checksum is wrong"),
        (nul, "line 2: "),
        (
            whole[..whole.len() - 9].to_owned(),
            "line 6: the record is torn",
        ),
        (whole.replace("toolq", "tool\u{fffd}"), "line 1: "),
        (String::new(), "the file is empty"),
    ] {
        let (text, code) = verdict(damaged.as_bytes());
        assert!(
            text.starts_with(&format!("log.jsonl: {said}")),
            "{said}: {text}"
        );
        assert_eq!(code, 4);
    }
}

/// FAULTS 120, 130: what a newer toolq added is passed over, and a clock that goes backwards is no damage.
#[test]
fn what_is_no_damage() {
    let mut log = Forge::new();
    let session = log.session_of(&json!({"major": 1, "minor": 7}));
    log.timestamp -= 3_600_000;
    let turn = log.turn(session, 0);
    log.ran(turn, "say", "ok", 1);
    log.add("tool_dreamt", Some(turn), &json!("zzz"), &json!({"new": 1}));
    let (text, code) = verdict(log.text().as_bytes());
    assert_eq!(
        (text.as_str(), code),
        (
            "log.jsonl: ok: 6 records, 1 session, 1 call; the last session has no end; in the newer format 1.7\n",
            0
        )
    );
    let mut newer = Forge::new();
    newer.session_of(&json!({"major": 2, "minor": 0}));
    assert_eq!(verdict(newer.text().as_bytes()).1, 4);
    log.add(
        "tool_dreamt",
        Some(turn),
        &json!(1),
        &json!({"must_understand": true}),
    );
    assert_eq!(verdict(log.text().as_bytes()).1, 4);
}

/// What no toolq would write is no good log, however well it is sealed.
#[test]
fn a_broken_promise_is_named() {
    let mut log = Forge::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let call = log.call(turn, "pay", &json!({}));
    log.start(call, "pay", 1);
    let session = log.session();
    log.start(call, "pay", 2);
    log.session_end(session);
    let (text, code) = verdict(log.text().as_bytes());
    assert!(text.starts_with("log.jsonl: line 6: "), "{text}");
    assert!(text.contains("starts again"), "{text}");
    assert_eq!(code, 4);
}

#[test]
fn files_beside_the_log_are_verified() {
    let large = "x".repeat(100_000);
    let toolq = || {
        let call = json!({"type": "tool_use", "id": "a", "name": "say", "input": {"x": large}});
        Toolq::new().tools(crate::TOOLS).stdin(call.to_string())
    };
    let spoilt = |spoil: &str| {
        let script = format!(
            "\"$TOOLQ\" run -q --log log.jsonl > out; {spoil}; \"$TOOLQ\" log verify log.jsonl"
        );
        toolq().shell(&script)
    };
    let good = spoilt("true").exits(0);
    assert!(good.stdout.contains("file"), "{}", good.stdout);
    for (spoil, said) in [
        ("for f in log.jsonl.d/*; do printf y >> $f; done", "bytes; "),
        (
            "for f in log.jsonl.d/*; do tr x y < $f > other; cat other > $f; done",
            "has other bytes",
        ),
        ("rm -r log.jsonl.d", "can't be read"),
        (
            "for f in log.jsonl.d/*; do mv $f other; ln -s $PWD/other $f; done",
            "can't be read",
        ),
    ] {
        let ran = spoilt(spoil).exits(4);
        assert!(ran.stdout.starts_with("log.jsonl: line "), "{}", ran.stdout);
        assert!(ran.stdout.contains(said), "{said}: {}", ran.stdout);
    }
}

#[test]
fn every_log_has_its_line() {
    let ran = Toolq::new()
        .file("good.jsonl", sample())
        .file("bad.jsonl", "{}\n")
        .run(&[
            "log",
            "verify",
            "bad.jsonl",
            "none.jsonl",
            "good.jsonl",
            ".",
        ])
        .exits(4);
    let said: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(
        said[0],
        "bad.jsonl: line 1: this is no record of a session log"
    );
    assert_eq!(said[1], "none.jsonl: there is no session log none.jsonl");
    assert_eq!(said[2], "good.jsonl: ok: 6 records, 1 session, 1 call");
    assert!(
        said[3].starts_with(".: the session log . is no regular file"),
        "{}",
        said[3]
    );
    assert_eq!(
        fs::read_dir(ran.dir.path()).unwrap().count(),
        2,
        "it writes nothing"
    );
}

/// Who reads, reads what the system lets him; who writes is as strict as ever (FAULTS 121).
#[test]
fn readers_follow_links() {
    let tools = "tools: {echo: {input_schema: {type: object}, effect: write, command: [cat]}}";
    let large = response(&[("echo", json!({"x": "x".repeat(100_000)}))]);
    let script = r#"mkdir logs; "$TOOLQ" run -q --log logs/a < in > /dev/null; ln -s logs/a link; ln -s loop loop; mkfifo pipe
        "$TOOLQ" log verify link; "$TOOLQ" log show link | grep -c xxxx; "$TOOLQ" log stats link | grep -c echo; "$TOOLQ" log cost link > /dev/null
        for no in "run --resume in --log" "log resolve toolu_0 --not-done"; do "$TOOLQ" $no link; echo $?; done
        for no in loop pipe logs /dev/null; do "$TOOLQ" log show $no; echo $?; done"#;
    let ran = Toolq::new().tools(tools).file("in", large).shell(script);
    let first = "link: ok: 6 records, 1 session, 1 call, 3 files\n";
    assert!(ran.stdout.starts_with(first), "{}", ran.stdout);
    let rest = &ran.stdout[first.len()..];
    assert_eq!(rest, "3\n1\n4\n4\n4\n4\n4\n4\n", "{}", ran.stderr);
    for said in [
        "the session log link is a symbolic link",
        "the session log loop can't be opened: Too many levels",
        "the session log pipe is no regular file",
        "the session log logs is no regular file",
        "the session log /dev/null is no regular file",
    ] {
        assert!(ran.stderr.contains(said), "{said}\n{}", ran.stderr);
    }
}

/// FAULTS 121: another user's log may be looked at, where the system allows it, and not be gone on with.
#[test]
fn readers_take_what_is_not_theirs() {
    let toolq = Toolq::new().file("log.jsonl", sample());
    if std::os::unix::fs::chown(toolq.path().join("log.jsonl"), Some(1), None).is_err() {
        say(format_args!("skipped: only root gives files away"));
        return;
    }
    let script =
        r#""$TOOLQ" log verify log.jsonl; "$TOOLQ" log resolve a log.jsonl --not-done; echo $?"#;
    let ran = toolq.shell(script);
    assert!(
        ran.stdout.contains(": ok: ") && ran.stdout.ends_with("\n4\n"),
        "{}",
        ran.stdout
    );
    let words = "error: the session log log.jsonl belongs to another user\n hint: name a file that a run of toolq wrote\n";
    assert_eq!(ran.stderr, words);
}

/// What a reader is advised to do fits the command, and its grammar the number.
#[test]
fn cures_fit_the_command() {
    let whole = sample();
    let damaged = |line: usize| {
        let mut lines: Vec<String> = whole.split_inclusive('\n').map(str::to_owned).collect();
        lines[line - 1] = lines[line - 1].replacen("\"id\"", "\"ID\"", 1);
        Toolq::new().file("log.jsonl", lines.concat())
    };
    for (line, hint) in [
        (
            2,
            "the record before it is whole: look at it with `head -n 1 log.jsonl`",
        ),
        (
            4,
            "the 3 records before it are whole: look at them with `head -n 3 log.jsonl`",
        ),
    ] {
        for verb in ["show", "stats", "cost"] {
            let ran = damaged(line).run(&["log", verb, "log.jsonl"]).exits(4);
            assert!(ran.stderr.contains(hint), "{}", ran.stderr);
        }
    }
    let resolve = ["log", "resolve", "a", "log.jsonl", "--not-done"];
    let ran = damaged(2).run(&resolve).exits(4);
    insta::assert_snapshot!(ran.stderr, @"
    error: the session log log.jsonl is damaged in line 2: its checksum is wrong: bytes of it were changed
     hint: restore it from a copy: nothing can be added behind line 2; `toolq log show log.jsonl` shows what stands before it
    ");
    let ran = Toolq::new().run(&resolve).exits(4);
    insta::assert_snapshot!(ran.stderr, @"
    error: there is no session log log.jsonl
     hint: name a file that a run of toolq wrote
    ");
    let ran = Toolq::new()
        .run(&["log", "resolve", "a", "--not-done"])
        .exits(4);
    let hint = " hint: name a file that a run of toolq wrote\n";
    assert!(ran.stderr.ends_with(hint), "{}", ran.stderr);
}
