use serde_json::json;

use crate::forge::Forge;
use crate::support::{Ran, Toolq, json_lines, response};
use crate::{TOOLS, ran};

const RUN: &str = "\"$TOOLQ\" run -q --log log.jsonl > out;";

/// Runs, and shows the log with these arguments.
fn shown(arguments: &str) -> Ran {
    let script = format!("{RUN} \"$TOOLQ\" log show log.jsonl {arguments}");
    ran().shell(&script).exits(0)
}

/// The text with all times as `…`.
fn timeless(text: &str) -> String {
    let words = text.split_inclusive([' ', '\n', ',', ':']);
    let words = words.map(|word| {
        let bare = word.trim_end_matches([' ', '\n', ',', ':']);
        let is_time = bare.trim_end_matches(['m', 's']).parse::<f64>().is_ok();
        if is_time && bare.ends_with('s') {
            word.replace(bare, "…")
        } else {
            word.to_owned()
        }
    });
    words.collect()
}

/// A log that is shown as far as it goes.
fn of(log: &str, arguments: &[&str]) -> Ran {
    let arguments = [&["log", "show", "log.jsonl"], arguments].concat();
    Toolq::new().file("log.jsonl", log).run(&arguments)
}

#[test]
fn a_block_for_each_turn() {
    let text = shown("").stdout;
    let (title, rest) = text.split_once('\n').unwrap();
    assert!(
        title.starts_with("session of 20") && title.contains(" with tools.yaml (toolq "),
        "{title}"
    );
    insta::assert_snapshot!(timeless(rest), @r#"

    turn 0
        0  nobody                unknown tool
           {}
           Unknown tool: no tool is called `nobody`
           known: say, fail
           Hint: call one of the known tools by its exact name, or go on without.
        1  say                   ok, …, 7 bytes
           {"x":"one\ntwo"}
           one
           two
        2  say                   ok, …, 5 bytes
           {"x":"three"}
           three
        3  fail                  failed, exit 3, …
           {}
           Exit code 3.
           no
           Hint: read what it wrote, and change the input before you call it again.
        4  say                   not executed
           {"x":"never"}
           Not executed: the preceding fail call failed.
           Hint: see to that failure first, then call this again if it is still needed.

    exit 0 after …: 5 calls, 2 errors, 1 skipped
    "#);
}

/// FAULTS 45, 78, 137: nothing that a model or a tool wrote reaches a terminal as a command.
#[test]
fn nothing_moves_the_cursor() {
    let mut log = Forge::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let call = log.call(turn, "say\u{1b}[2J", &json!({"x": "\u{202e}\u{9b}31m"}));
    log.start(call, "say\u{1b}[2J", 1);
    let metadata = json!({
        "tool_use_id": "a\u{7}", "tool_name": "say\u{1b}[2J", "is_error": false, "status": "ok\u{1b}c",
        "duration_ms": 1, "attempts": 1,
    });
    log.add(
        "tool_result",
        Some(call),
        &json!("\u{1b}]52;c;aGk=\u{7}\r\u{2028}"),
        &metadata,
    );
    let plain = of(log.text(), &[]).exits(0).stdout;
    let hidden = |c: char| c.is_control() && c != '\n';
    assert!(
        !plain.contains(hidden) && !plain.contains('\u{202e}'),
        "{plain:?}"
    );
    assert!(
        plain.contains(r"say\x1b[2J") && plain.contains(r"\x1b]52;c;aGk=\x07\r\u2028"),
        "{plain}"
    );
    let colored = of(log.text(), &["--color", "always"]).exits(0).stdout;
    assert!(colored.contains("\u{1b}[32mok"), "{colored}");
    assert!(!colored.contains("\u{1b}]") && !colored.contains("\u{1b}[2J"));
}

#[test]
fn records_as_they_are() {
    let ran = shown("--format json");
    assert_eq!(ran.stdout, ran.file("log.jsonl").unwrap());
    let kinds = |arguments: &str| -> Vec<String> {
        let records = json_lines(&shown(arguments).stdout).into_iter();
        let kinds = records.map(|record| record["type"].as_str().unwrap().to_owned());
        kinds.collect()
    };
    assert_eq!(
        kinds("--format json --tool fail"),
        ["tool_call", "tool_start", "tool_result"]
    );
    assert_eq!(
        kinds("--format json --errors"),
        ["tool_result", "tool_result", "tool_skipped"]
    );
    assert_eq!(kinds("--format json --errors --tool say"), ["tool_skipped"]);
}

#[test]
fn only_what_is_wanted() {
    let errors = shown("--errors").stdout;
    assert!(
        errors.contains("unknown tool") && errors.contains("not executed"),
        "{errors}"
    );
    assert!(
        errors.contains("turn 0") && !errors.contains("three") && !errors.contains("exit 0 after")
    );
    let tools = shown("--tool say --tool nobody").stdout;
    assert!(
        tools.contains("three") && tools.contains("nobody") && !tools.contains("exit 3"),
        "{tools}"
    );
    let none = shown("--tool none --tool fial --tool say");
    assert!(none.stdout.contains("three"), "{}", none.stdout);
    insta::assert_snapshot!(none.stderr, @"
    warning: no call in log.jsonl is of a tool fial; did you mean fail?
    warning: no call in log.jsonl is of a tool none
    ");
    assert_eq!(shown("--tool none").stdout, "");
}

/// What somebody found out about a call, and what was asked about it, are of its tool.
#[test]
fn records_of_a_tool_are_all_of_its_calls() {
    let mut log = Forge::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    log.ran(turn, "say", "ok", 1);
    let call = log.call(turn, "pay", &json!({}));
    log.start(call, "pay", 1);
    let of_pay = json!({"tool_use_id": "toolu_5", "tool_name": "pay"});
    log.add("probe_start", Some(call), &json!(null), &of_pay);
    let failed =
        json!({"tool_use_id": "toolu_5", "tool_name": "pay", "done": true, "is_error": true});
    log.add("resolve", Some(call), &json!("refused"), &failed);
    let kinds = |arguments: &[&str]| -> Vec<String> {
        let arguments = [&["--format", "json"], arguments].concat();
        let records = json_lines(&of(log.text(), &arguments).exits(0).stdout).into_iter();
        let kinds = records.map(|record| record["type"].as_str().unwrap().to_owned());
        kinds.collect()
    };
    assert_eq!(
        kinds(&["--tool", "pay"]),
        ["tool_call", "tool_start", "probe_start", "resolve"]
    );
    assert_eq!(kinds(&["--errors"]), ["resolve"]);
    assert_eq!(kinds(&["--errors", "--tool", "say"]), [""; 0]);
}

/// A log of three sessions, of which each but the last was killed. Of its calls the first has its result in the second,
/// the second was resolved, the third not done, the fourth failed in the first session and the fifth has no end.
fn in_three_sessions() -> Forge {
    let mut log = Forge::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let calls: Vec<u64> = (1..=5)
        .map(|at| log.call(turn, "pay", &json!({ "at": at })))
        .collect();
    for call in &calls {
        log.start(*call, "pay", 1);
    }
    log.end("tool_result", calls[3], "pay", ("failed", 1, 1));
    log.session();
    log.end("tool_in_doubt", calls[0], "pay", ("in_doubt", 1, 1));
    log.end("tool_in_doubt", calls[1], "pay", ("in_doubt", 1, 1));
    let resolve = |done: bool| json!({"tool_use_id": "a", "tool_name": "pay", "done": done});
    log.add("resolve", Some(calls[0]), &json!(null), &resolve(false));
    log.add("resolve", Some(calls[1]), &json!("paid"), &resolve(true));
    log.add("resolve", Some(calls[2]), &json!(null), &resolve(false));
    let last = log.session();
    log.start(calls[0], "pay", 2);
    log.end("tool_result", calls[0], "pay", ("ok", 1, 2));
    log.session_end(last);
    log
}

/// What a later session, or somebody, has settled is no error any more.
#[test]
fn errors_are_those_at_the_end_of_the_log() {
    let log = in_three_sessions();
    let errors = of(log.text(), &["--errors"]).exits(0).stdout;
    let (title, rest) = errors.split_once('\n').unwrap();
    assert!(title.starts_with("session of "), "{errors}");
    insta::assert_snapshot!(timeless(rest), @r#"

    turn 0
        0  pay                   resolved: not done, so it runs when the run is resumed
           {"at":3}
        0  pay                   failed, …
           {"at":4}
           this is failed
        0  pay                   started, and no result
           {"at":5}
    "#);
    // All that happened is shown without it.
    let all = of(log.text(), &[]).exits(0).stdout;
    assert_eq!(all.matches("started, and no result").count(), 4, "{all}");
    let first = all.find("resolved pay a: not done").unwrap();
    assert!(all[..first].contains("in doubt"), "{all}");
}

#[test]
fn large_bodies_are_found_beside_the_log() {
    let large = "x".repeat(100_000);
    let toolq = || {
        Toolq::new()
            .tools(TOOLS)
            .stdin(response(&[("say", json!({ "x": large }))]))
    };
    let ran = toolq()
        .shell(&format!("{RUN} \"$TOOLQ\" log show log.jsonl"))
        .exits(0);
    assert!(
        ran.stdout.contains("say ") && ran.stdout.contains("{\"x\":\"xxxx"),
        "{}",
        ran.stdout
    );
    let gone = format!("{RUN} rm -r log.jsonl.d; \"$TOOLQ\" log show log.jsonl");
    let ran = toolq().shell(&gone).exits(0);
    assert!(
        ran.stdout.contains("(the file ") && ran.stdout.contains("can't be read"),
        "{}",
        ran.stdout
    );
}

/// FAULTS 108: what a killed run has left is shown, up to the last byte that says something.
#[test]
fn a_run_that_was_killed() {
    let mut log = Forge::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    log.ran(turn, "say", "ok", 1);
    let started = log.call(turn, "pay", &json!({}));
    log.call(turn, "wait", &json!({}));
    log.start(started, "pay", 1);
    let torn = format!("{}{{\"seq\":8,", log.text());
    let ran = of(&torn, &[]).exits(0);
    assert!(
        ran.stderr
            .contains("warning: log.jsonl ends too early, in line 9: "),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stdout
            .contains("pay                   started, and no result"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout
            .contains("wait                  not started, and no result"),
        "{}",
        ran.stdout
    );
    let errors = of(&torn, &["--errors", "-q"]).exits(0);
    assert!(
        errors.stdout.contains("pay") && !errors.stdout.contains("say"),
        "{}",
        errors.stdout
    );
    assert_eq!(errors.stderr, "");
}

/// A resumed run goes on with calls of the one before: they are shown again, below its own title.
#[test]
fn a_run_that_was_resumed() {
    let mut log = Forge::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let calls: Vec<u64> = (0..2)
        .map(|at| log.call(turn, "pay", &json!({ "at": at })))
        .collect();
    log.start(calls[0], "pay", 1);
    let resolve =
        json!({"tool_use_id": "toolu_2", "tool_name": "pay", "done": true, "note": "seen"});
    log.add("resolve", Some(calls[0]), &json!("paid 5"), &resolve);
    let session = log.session();
    log.start(calls[1], "pay", 1);
    log.end("tool_result", calls[1], "pay", ("ok", 1, 1));
    log.session_end(session);
    let text = of(log.text(), &[]).exits(0).stdout;
    let (first, second) = text.split_once("\nsession of ").unwrap();
    assert!(
        first.contains("started, and no result") && first.contains("not started, and"),
        "{first}"
    );
    assert!(
        text.contains("resolved pay toolu_2: done: paid 5 (seen)"),
        "{text}"
    );
    assert!(
        second.contains("turn 0\n") && second.contains("{\"at\":1}"),
        "{second}"
    );
    assert!(
        second.contains("this is ok") && !second.contains("{\"at\":0}"),
        "{second}"
    );
}

/// A turn of the agent that works on `call`.
fn agents_turn(log: &mut Forge, call: u64, agent: &str, turn: usize) -> u64 {
    let metadata = json!({"turn": turn, "agent": agent});
    log.add("turn", Some(call), &json!(null), &metadata)
}

/// A coordinator has called a librarian, whose second turn was killed; a second session went on with it.
fn of_agents() -> Forge {
    let mut log = Forge::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let coordinator = log.call(turn, "coordinator", &json!({"q": "all"}));
    log.start(coordinator, "coordinator", 1);
    let turn = agents_turn(&mut log, coordinator, "coordinator", 0);
    let librarian = log.call(turn, "librarian", &json!({"q": "a"}));
    let search = log.call(turn, "search", &json!({"x": "b"}));
    log.start(librarian, "librarian", 1);
    log.start(search, "search", 1);
    log.end("tool_result", search, "search", ("ok", 1, 1));
    let turn = agents_turn(&mut log, librarian, "librarian", 0);
    log.ran(turn, "read_file", "failed", 1);
    let turn = agents_turn(&mut log, librarian, "librarian", 1);
    let of_turn_1 = json!({"tool_use_id": "toolu_n", "turn": 1, "position": 2});
    let content = json!({"name": "note", "input": {}});
    let note = log.add("tool_call", Some(turn), &content, &of_turn_1);
    log.start(note, "note", 1);
    let last = log.session();
    log.start(coordinator, "coordinator", 2);
    log.start(librarian, "librarian", 2);
    log.start(note, "note", 2);
    log.end("tool_result", note, "note", ("ok", 1, 2));
    log.end("tool_result", librarian, "librarian", ("ok", 1, 2));
    log.end("tool_result", coordinator, "coordinator", ("ok", 1, 2));
    log.session_end(last);
    log
}

/// Each call stands once, below the agent whose it is, with what became of it in its session.
#[test]
fn calls_of_an_agent_stand_below_its_own() {
    let text = of(of_agents().text(), &[]).exits(0).stdout;
    let parts: Vec<&str> = text.split("session of ").collect();
    let block = |part: &str| timeless(part.split_once('\n').unwrap().1);
    insta::assert_snapshot!(block(parts[1]), @r#"

    turn 0
        0  coordinator
           {"q":"all"}
           turn 0 of coordinator
             0  coordinator › librarian
                {"q":"a"}
                turn 0 of coordinator › librarian
                  0  coordinator › librarian › read_file  failed, …
                     {"path":"a"}
                     this is failed
                turn 1 of coordinator › librarian
                  2  coordinator › librarian › note  started, and no result
                     {}
                coordinator › librarian  started, and no result
             0  coordinator › search  ok, …
                {"x":"b"}
                this is ok
           coordinator           started, and no result
    "#);
    insta::assert_snapshot!(block(parts[2]), @r#"

    turn 0
        0  coordinator
           {"q":"all"}
           turn 0 of coordinator
             0  coordinator › librarian
                {"q":"a"}
                turn 1 of coordinator › librarian
                  2  coordinator › librarian › note  ok, …, 2 attempts
                     {}
                     this is ok
                coordinator › librarian  ok, …, 2 attempts
                this is ok
           coordinator           ok, …, 2 attempts
           this is ok

    exit 0 after …: 1 call
    "#);
}

/// By itself a call says whose it is.
#[test]
fn calls_of_an_agent_that_are_wanted() {
    let log = of_agents();
    let shown = |arguments: &[&str]| {
        let text = of(log.text(), arguments).exits(0).stdout;
        timeless(text.split_once('\n').unwrap().1)
    };
    insta::assert_snapshot!(shown(&["--errors"]), @r#"

    turn 0
           coordinator › librarian › read_file  failed, …
           {"path":"a"}
           this is failed
    "#);
    insta::assert_snapshot!(shown(&["--tool", "read_file", "--errors"]), @r#"

    turn 0
           coordinator › librarian › read_file  failed, …
           {"path":"a"}
           this is failed
    "#);
    insta::assert_snapshot!(shown(&["--tool", "note"]), @"

    turn 0
           coordinator › librarian › note  started, and no result
           {}

    session of 2025-11-21 20:00:00 UTC with tools.yaml (toolq 0.1.0)

    turn 0
           coordinator › librarian › note  ok, …, 2 attempts
           {}
           this is ok
    ");
}

/// What an agent has done is shown while it works.
#[test]
fn an_agent_that_works_is_shown() {
    let log = of_agents();
    let cut: Vec<&str> = log
        .text()
        .lines()
        .take_while(|line| !line.contains("\"seq\":14,"))
        .collect();
    let cut = format!("{}\n", cut.join("\n"));
    let mut show = toolq::log_view::Show::new(
        toolq::log_view::Page {
            width: 80,
            color: false,
        },
        toolq::log_view::Filter::default(),
    );
    let folder = Toolq::new().file("log.jsonl", cut);
    let path = folder.path().join("log.jsonl");
    let mut text = String::new();
    for record in toolq_log::Records::open(&path).unwrap() {
        let record = record.unwrap();
        let mut content = || Ok(record.content.load(&path).unwrap().get().to_owned());
        text.push_str(&show.take(&record, &mut content).unwrap());
    }
    assert!(
        text.contains("coordinator › librarian › read_file"),
        "{text}"
    );
    assert!(!text.contains("no result"), "{text}");
}

/// A log may be forged: agents that stand below each other without an end.
#[test]
fn agents_deeper_than_any() {
    let mut log = Forge::new();
    let session = log.session();
    let mut turn = log.turn(session, 0);
    for _ in 0..2_000 {
        let call = log.call(turn, "again", &json!({}));
        log.start(call, "again", 1);
        turn = agents_turn(&mut log, call, "again", 0);
    }
    let text = of(log.text(), &[]).exits(0).stdout;
    assert_eq!(text.matches("started, and no result").count(), 2_000);
}

/// FAULTS 114.
#[test]
fn what_stands_before_a_damage_is_shown() {
    let mut log = Forge::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    log.ran(turn, "say", "ok", 1);
    log.session_end(session);
    let damaged = log.text().replace("\"exit_code\":0", "\"exit_code\":1");
    let ran = of(&damaged, &[]).exits(4);
    assert!(ran.stdout.contains("this is ok"), "{}", ran.stdout);
    assert!(
        ran.stderr
            .contains("is damaged in line 6: its checksum is wrong"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("head -n 5"), "{}", ran.stderr);
}

#[test]
fn the_latest_session_needs_no_name() {
    let script = "cat > in; \"$TOOLQ\" run -q < in > /dev/null; echo '{\"type\":\"tool_use\",\"id\":\"z\",\"name\":\"last\",\"input\":{}}' | \"$TOOLQ\" run -q > /dev/null; \"$TOOLQ\" log show -v";
    let ran = ran().shell(script).exits(0);
    assert!(
        ran.stdout.contains("last") && !ran.stdout.contains("nobody"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stderr.contains("note: the latest session: "),
        "{}",
        ran.stderr
    );
    let none = Toolq::new().run(&["log", "show"]).exits(4);
    assert!(
        none.stderr.contains("there is no session log in "),
        "{}",
        none.stderr
    );
}
