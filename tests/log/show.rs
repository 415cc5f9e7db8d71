//! `toolq log show`.

use serde_json::json;

use crate::log_builder::LogBuilder;
use crate::support::{CliOutput, CliSandbox, model_response, parse_json_lines};
use crate::{TOOLS, sandbox_with_five_calls};

const RUN_SCRIPT: &str = "\"$TOOLQ\" run -q --log log.jsonl > out;";

/// Runs five calls and shows their log with these arguments.
fn show_run(arguments: &str) -> CliOutput {
    let script = format!("{RUN_SCRIPT} \"$TOOLQ\" log show log.jsonl {arguments}");
    sandbox_with_five_calls().run_shell(&script).assert_exit(0)
}

/// Replaces every duration by `…`.
fn mask_durations(text: &str) -> String {
    let words = text.split_inclusive([' ', '\n', ',', ':']);
    let words = words.map(|word| {
        let bare = word.trim_end_matches([' ', '\n', ',', ':']);
        let is_number = bare.trim_end_matches(['m', 's']).parse::<f64>().is_ok();
        if is_number && bare.ends_with('s') {
            word.replace(bare, "…")
        } else {
            word.to_owned()
        }
    });
    words.collect()
}

/// Shows a log with this content.
fn show_log(log: &str, arguments: &[&str]) -> CliOutput {
    let arguments = [&["log", "show", "log.jsonl"], arguments].concat();
    CliSandbox::new().file("log.jsonl", log).run(&arguments)
}

/// What toolq itself adds to a view of a log has only characters that the locale has.
#[test]
fn an_ascii_locale_gets_ascii() {
    let show = |locale: &str| {
        let script = format!(
            "export LC_ALL={locale}; {RUN_SCRIPT} \"$TOOLQ\" log show log.jsonl; \"$TOOLQ\" log stats log.jsonl; true"
        );
        let input = json!({"x": "long ".repeat(90)});
        let sandbox = CliSandbox::new()
            .tools(TOOLS)
            .stdin(model_response(&[("say", input)]));
        sandbox.run_shell(&script).assert_exit(0).stdout
    };
    let (wide, ascii) = (show("C.UTF-8"), show("C"));
    assert!(wide.contains('…'), "{wide}");
    assert!(ascii.contains('~') && ascii.is_ascii(), "{ascii}");
}

#[test]
fn each_turn_is_a_block() {
    let text = show_run("").stdout;
    let (title, rest) = text.split_once('\n').unwrap();
    assert!(
        title.starts_with("session of 20") && title.contains(" with tools.yaml (toolq "),
        "{title}"
    );
    insta::assert_snapshot!(mask_durations(rest), @r#"

    turn 0: msg_1, from stdin
        0  missing               unknown tool
           {}
           Unknown tool: no tool named `missing`
           known: say, fail
           Hint: call one of the known tools by its exact name, or continue without it.
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
           Hint: read its output, and change the input before calling it again.
        4  say                   not executed
           {"x":"never"}
           Not executed: the preceding fail call failed.
           Hint: deal with that failure first, then call this again if it is still needed.

    exit 0 after …: 5 calls, 2 errors, 1 skipped
    "#);
}

/// Control sequences in texts of models and tools never reach the terminal.
#[test]
fn control_characters_are_escaped() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let call = log.call(turn, "say\u{1b}[2J", &json!({"x": "\u{202e}\u{9b}31m"}));
    log.start(call, "say\u{1b}[2J", 1);
    let metadata = json!({
        "tool_use_id": "a\u{7}", "tool_name": "say\u{1b}[2J", "is_error": false, "status": "ok\u{1b}c",
        "duration_ms": 1, "attempts": 1,
    });
    log.add_record(
        "tool_result",
        Some(call),
        &json!("\u{1b}]52;c;aGk=\u{7}\r\u{2028}"),
        &metadata,
    );
    let plain = show_log(log.text(), &[]).assert_exit(0).stdout;
    let hidden = |c: char| c.is_control() && c != '\n';
    assert!(
        !plain.contains(hidden) && !plain.contains('\u{202e}'),
        "{plain:?}"
    );
    assert!(
        plain.contains(r"say\x1b[2J") && plain.contains(r"\x1b]52;c;aGk=\x07\r\u2028"),
        "{plain}"
    );
    let colored = show_log(log.text(), &["--color", "always"])
        .assert_exit(0)
        .stdout;
    assert!(colored.contains("\u{1b}[32mok"), "{colored}");
    assert!(!colored.contains("\u{1b}]") && !colored.contains("\u{1b}[2J"));
}

#[test]
fn json_prints_records_verbatim() {
    let ran = show_run("--format json");
    assert_eq!(ran.stdout, ran.file("log.jsonl").unwrap());
    let kinds = |arguments: &str| -> Vec<String> {
        let records = parse_json_lines(&show_run(arguments).stdout).into_iter();
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
fn filters_select_calls() {
    let errors = show_run("--errors").stdout;
    assert!(
        errors.contains("unknown tool") && errors.contains("not executed"),
        "{errors}"
    );
    assert!(
        errors.contains("turn 0") && !errors.contains("three") && !errors.contains("exit 0 after")
    );
    let tools = show_run("--tool say --tool missing").stdout;
    assert!(
        tools.contains("three") && tools.contains("missing") && !tools.contains("exit 3"),
        "{tools}"
    );
    let filtered = show_run("--tool no_such --tool fial --tool say");
    assert!(filtered.stdout.contains("three"), "{}", filtered.stdout);
    insta::assert_snapshot!(filtered.stderr, @"
    warning: no calls of fial in log.jsonl; did you mean fail?
    warning: no calls of no_such in log.jsonl
    ");
    assert_eq!(show_run("--tool no_such").stdout, "");
}

/// `resolve` and probe records belong to their call's tool too.
#[test]
fn the_tool_filter_keeps_every_record_of_its_calls() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    log.finished_call(turn, "say", "ok", 1);
    let call = log.call(turn, "pay", &json!({}));
    log.start(call, "pay", 1);
    let of_pay = json!({"tool_use_id": "toolu_5", "tool_name": "pay"});
    log.add_record("probe_start", Some(call), &json!(null), &of_pay);
    let failed =
        json!({"tool_use_id": "toolu_5", "tool_name": "pay", "done": true, "is_error": true});
    log.add_record("resolve", Some(call), &json!("refused"), &failed);
    let kinds = |arguments: &[&str]| -> Vec<String> {
        let arguments = [&["--format", "json"], arguments].concat();
        let records =
            parse_json_lines(&show_log(log.text(), &arguments).assert_exit(0).stdout).into_iter();
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

/// A log of three sessions, of which the first two were killed. Its first call has its result in the last session, the
/// second was resolved as done, the third as not done, the fourth failed in the first session, and the fifth has no
/// result.
fn three_session_log() -> LogBuilder {
    let mut log = LogBuilder::new();
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
    log.add_record("resolve", Some(calls[0]), &json!(null), &resolve(false));
    log.add_record("resolve", Some(calls[1]), &json!("paid"), &resolve(true));
    log.add_record("resolve", Some(calls[2]), &json!(null), &resolve(false));
    let last = log.session();
    log.start(calls[0], "pay", 2);
    log.end("tool_result", calls[0], "pay", ("ok", 1, 2));
    log.session_end(last);
    log
}

/// A call that was resolved, or that a later session finished, is no longer an error.
#[test]
fn errors_shows_calls_whose_final_state_is_an_error() {
    let log = three_session_log();
    let errors = show_log(log.text(), &["--errors"]).assert_exit(0).stdout;
    let (title, rest) = errors.split_once('\n').unwrap();
    assert!(title.starts_with("session of "), "{errors}");
    insta::assert_snapshot!(mask_durations(rest), @r#"

    turn 0
        0  pay                   resolved: not done; it will run on resume
           {"at":3}
        0  pay                   failed, …
           {"at":4}
           this is failed
        0  pay                   started, no result
           {"at":5}
    "#);
    // Without `--errors`, the whole history is shown.
    let all = show_log(log.text(), &[]).assert_exit(0).stdout;
    assert_eq!(all.matches("started, no result").count(), 4, "{all}");
    let first = all.find("resolved pay a: not done").unwrap();
    assert!(all[..first].contains("in doubt"), "{all}");
}

#[test]
fn large_content_is_read_from_blobs() {
    let large = "x".repeat(100_000);
    let toolq = || {
        CliSandbox::new()
            .tools(TOOLS)
            .stdin(model_response(&[("say", json!({ "x": large }))]))
    };
    let ran = toolq()
        .run_shell(&format!("{RUN_SCRIPT} \"$TOOLQ\" log show log.jsonl"))
        .assert_exit(0);
    assert!(
        ran.stdout.contains("say ") && ran.stdout.contains("{\"x\":\"xxxx"),
        "{}",
        ran.stdout
    );
    let script = format!("{RUN_SCRIPT} rm -r log.jsonl.d; \"$TOOLQ\" log show log.jsonl");
    let ran = toolq().run_shell(&script).assert_exit(0);
    assert!(
        ran.stdout.contains("(the file ") && ran.stdout.contains("can't be read"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_killed_run_is_shown_to_its_last_record() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    log.finished_call(turn, "say", "ok", 1);
    let started_call = log.call(turn, "pay", &json!({}));
    log.call(turn, "wait", &json!({}));
    log.start(started_call, "pay", 1);
    let torn = format!("{}{{\"seq\":8,", log.text());
    let ran = show_log(&torn, &[]).assert_exit(0);
    assert!(
        ran.stderr
            .contains("warning: log.jsonl is incomplete at line 9: "),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stdout
            .contains("pay                   started, no result"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout
            .contains("wait                  not started, no result"),
        "{}",
        ran.stdout
    );
    let errors = show_log(&torn, &["--errors", "-q"]).assert_exit(0);
    assert!(
        errors.stdout.contains("pay") && !errors.stdout.contains("say"),
        "{}",
        errors.stdout
    );
    assert_eq!(errors.stderr, "");
}

/// A resumed run continues calls of the previous one. They are shown again, below its own title.
#[test]
fn a_resumed_run_shows_its_calls_again() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let calls: Vec<u64> = (0..2)
        .map(|at| log.call(turn, "pay", &json!({ "at": at })))
        .collect();
    log.start(calls[0], "pay", 1);
    let resolve =
        json!({"tool_use_id": "toolu_2", "tool_name": "pay", "done": true, "note": "seen"});
    log.add_record("resolve", Some(calls[0]), &json!("paid 5"), &resolve);
    let session = log.session();
    log.start(calls[1], "pay", 1);
    log.end("tool_result", calls[1], "pay", ("ok", 1, 1));
    log.session_end(session);
    let text = show_log(log.text(), &[]).assert_exit(0).stdout;
    let (first, second) = text.split_once("\nsession of ").unwrap();
    assert!(
        first.contains("started, no result") && first.contains("not started, no"),
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

/// Adds a turn of the agent that runs `call`.
fn add_agent_turn(log: &mut LogBuilder, call: u64, agent: &str, turn: usize) -> u64 {
    let metadata = json!({"turn": turn, "agent": agent});
    log.add_record("turn", Some(call), &json!(null), &metadata)
}

/// A log of a coordinator that called a librarian. The run was killed in the librarian's second turn, and a second
/// session continues it.
fn agent_log() -> LogBuilder {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let coordinator = log.call(turn, "coordinator", &json!({"q": "all"}));
    log.start(coordinator, "coordinator", 1);
    let turn = add_agent_turn(&mut log, coordinator, "coordinator", 0);
    let librarian = log.call(turn, "librarian", &json!({"q": "a"}));
    let search = log.call(turn, "search", &json!({"x": "b"}));
    log.start(librarian, "librarian", 1);
    log.start(search, "search", 1);
    log.end("tool_result", search, "search", ("ok", 1, 1));
    let turn = add_agent_turn(&mut log, librarian, "librarian", 0);
    log.finished_call(turn, "read_file", "failed", 1);
    let turn = add_agent_turn(&mut log, librarian, "librarian", 1);
    let of_turn_1 = json!({"tool_use_id": "toolu_n", "turn": 1, "position": 2});
    let content = json!({"name": "note", "input": {}});
    let note = log.add_record("tool_call", Some(turn), &content, &of_turn_1);
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

/// In each session, every call is shown once, below its agent, with its state in that session.
#[test]
fn agent_calls_are_nested() {
    let text = show_log(agent_log().text(), &[]).assert_exit(0).stdout;
    let parts: Vec<&str> = text.split("session of ").collect();
    let block = |part: &str| mask_durations(part.split_once('\n').unwrap().1);
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
                  2  coordinator › librarian › note  started, no result
                     {}
                coordinator › librarian  started, no result
             0  coordinator › search  ok, …
                {"x":"b"}
                this is ok
           coordinator           started, no result
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

/// A call that is shown without its agent names the agent.
#[test]
fn filtered_agent_calls_name_their_agents() {
    let log = agent_log();
    let show = |arguments: &[&str]| {
        let text = show_log(log.text(), arguments).assert_exit(0).stdout;
        mask_durations(text.split_once('\n').unwrap().1)
    };
    insta::assert_snapshot!(show(&["--errors"]), @r#"

    turn 0
           coordinator › librarian › read_file  failed, …
           {"path":"a"}
           this is failed
    "#);
    insta::assert_snapshot!(show(&["--tool", "read_file", "--errors"]), @r#"

    turn 0
           coordinator › librarian › read_file  failed, …
           {"path":"a"}
           this is failed
    "#);
    insta::assert_snapshot!(show(&["--tool", "note"]), @"

    turn 0
           coordinator › librarian › note  started, no result
           {}

    session of 2025-11-21 20:00:00 UTC with tools.yaml (toolq 0.1.0)

    turn 0
           coordinator › librarian › note  ok, …, 2 attempts
           {}
           this is ok
    ");
}

/// The calls of an agent are shown while it is still running.
#[test]
fn a_running_agent_is_shown() {
    let log = agent_log();
    let lines: Vec<&str> = log
        .text()
        .lines()
        .take_while(|line| !line.contains("\"seq\":14,"))
        .collect();
    let unfinished = format!("{}\n", lines.join("\n"));
    let mut show = toolq::log_view::LogRenderer::new(
        toolq::log_view::TextLayout {
            width: 80,
            color: false,
            is_whole: false,
        },
        toolq::log_view::CallFilter::default(),
    );
    let sandbox = CliSandbox::new().file("log.jsonl", unfinished);
    let path = sandbox.path().join("log.jsonl");
    let mut text = String::new();
    for record in toolq_log::RecordReader::open(&path).unwrap() {
        let record = record.unwrap();
        let mut content = || Ok(record.content.load(&path).unwrap().get().to_owned());
        text.push_str(&show.render_record(&record, &mut content).unwrap());
    }
    assert!(
        text.contains("coordinator › librarian › read_file"),
        "{text}"
    );
    assert!(!text.contains("no result"), "{text}");
}

/// A forged log may nest agents to any depth.
#[test]
fn deeply_nested_agents_do_not_overflow_the_stack() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let mut turn = log.turn(session, 0);
    for _ in 0..2_000 {
        let call = log.call(turn, "again", &json!({}));
        log.start(call, "again", 1);
        turn = add_agent_turn(&mut log, call, "again", 0);
    }
    let text = show_log(log.text(), &[]).assert_exit(0).stdout;
    assert_eq!(text.matches("started, no result").count(), 2_000);
}

#[test]
fn records_before_corruption_are_shown() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    log.finished_call(turn, "say", "ok", 1);
    log.session_end(session);
    let damaged = log.text().replace("\"exit_code\":0", "\"exit_code\":1");
    let ran = show_log(&damaged, &[]).assert_exit(4);
    assert!(ran.stdout.contains("this is ok"), "{}", ran.stdout);
    assert!(
        ran.stderr
            .contains("is damaged at line 6: the line doesn't match its checksum"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("head -n 5"), "{}", ran.stderr);
}

/// Everything that the log has of a call is shown, whole; of other calls, nothing.
#[test]
fn one_call_is_shown_whole() {
    let long = "so much depends ".repeat(50);
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let call = log.call(turn, "say", &json!({ "text": long }));
    let other = log.call(turn, "say", &json!({"text": "other"}));
    log.start(call, "say", 1);
    log.start(other, "say", 1);
    let lines: Vec<String> = (0..20)
        .map(|number| format!("line {number}\u{1b}"))
        .collect();
    log.result(call, "say", 250, &json!(lines.join("\n")));
    log.session_end(session);
    let id = format!("toolu_{call}");
    let text = show_log(log.text(), &["--id", &id]).assert_exit(0).stdout;
    let shown: Vec<&str> = text.lines().take(6).collect();
    assert_eq!(shown[0], "log.jsonl:");
    assert_eq!(
        shown[1],
        format!("say {id}: turn 0, position 0, batch 0, safe: effect")
    );
    assert!(shown[2].starts_with("  line 3, record 2, 2025-"), "{text}");
    assert!(shown[3].contains(long.trim_end()), "{text}");
    assert!(shown[4].ends_with(": tool_start: attempt 1"), "{text}");
    assert!(shown[5].contains(": tool_result: ok, 250ms"), "{text}");
    assert!(text.contains("\n      line 19\\x1b\n"), "{text}");
    assert!(!text.contains("other"), "{text}");
    let records = show_log(log.text(), &["--id", &id, "--format", "json"]);
    assert_eq!(records.assert_exit(0).lines().len(), 3);
    let unknown = show_log(log.text(), &["--id", "toolu_x"]).assert_exit(2);
    assert!(unknown.stderr.contains("no call toolu_x in log.jsonl"));
    let full = show_log(log.text(), &["--full"]).assert_exit(0).stdout;
    assert!(
        full.contains(long.trim_end()) && full.contains("line 19"),
        "{full}"
    );
    let short = show_log(log.text(), &[]).assert_exit(0).stdout;
    assert!(
        !short.contains("line 19") && !short.contains(long.trim_end()),
        "{short}"
    );
}

#[test]
fn the_latest_session_is_the_default() {
    let script = "cat > in; \"$TOOLQ\" run -q < in > /dev/null; echo '{\"type\":\"tool_use\",\"id\":\"z\",\"name\":\"last\",\"input\":{}}' | \"$TOOLQ\" run -q > /dev/null; \"$TOOLQ\" log show -v";
    let ran = sandbox_with_five_calls().run_shell(script).assert_exit(0);
    assert!(
        ran.stdout.contains("last") && !ran.stdout.contains("missing"),
        "{}",
        ran.stdout
    );
    let first = ran.stdout.lines().next().unwrap();
    assert!(first.ends_with(".jsonl:"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("note: latest session: "),
        "{}",
        ran.stderr
    );
    let ran = CliSandbox::new().run(&["log", "show"]).assert_exit(4);
    assert!(
        ran.stderr.contains("no session log found in "),
        "{}",
        ran.stderr
    );
}

/// Texts under `messages` are for the model. Why the call failed stays on record: in the log, in events and in
/// `log show`.
#[test]
fn a_replaced_text_doesnt_hide_the_cause() {
    let tools = |messages: &str| {
        format!(
            "{messages}tools:\n  query: {{input_schema: {{type: object}}, effect: read, command: [sh, -c, 'echo \"password authentication failed\" >&2; exit 2']}}\n"
        )
    };
    let replaced = "messages: {failed: \"The tool is unavailable, answer directly.\"}\n";
    for (messages, text) in [
        (replaced, "The tool is unavailable, answer directly."),
        ("", "Exit code 2."),
    ] {
        let ran = CliSandbox::new()
            .tools(&tools(messages))
            .file("input", model_response(&[("query", json!({}))]))
            .run_shell(
                r#""$TOOLQ" run -q --log log.jsonl --events events < input && "$TOOLQ" log show log.jsonl"#,
            )
            .assert_exit(0);
        let log = parse_json_lines(&ran.file("log.jsonl").unwrap());
        let end = log
            .iter()
            .find(|record| record["type"] == "tool_result")
            .unwrap();
        assert!(end["content"].as_str().unwrap().starts_with(text));
        assert_eq!(
            end["metadata"]["error"],
            json!({"message": "password authentication failed", "stderr": "password authentication failed"})
        );
        let events = parse_json_lines(&ran.file("events").unwrap());
        let failed = events.iter().find(|event| event["success"] == false);
        assert_eq!(failed.unwrap()["error"], "password authentication failed");
        let cause = "cause: password authentication failed";
        assert_eq!(
            ran.stdout.contains(cause),
            !messages.is_empty(),
            "{}",
            ran.stdout
        );
    }
}
