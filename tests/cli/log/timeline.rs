//! `toolq log export --format html`: the page shows what models and tools wrote as text. `.ci/pages` looks at it in a browser.

use std::time::Duration;
use std::{fs, thread};

use serde_json::{Value, json};

use toolq_core::os::ProcessIdentity;

use crate::log::list::process_that_is_gone;
use crate::log::log_builder::LogBuilder;
use crate::support::{CliSandbox, model_response, parse_json_lines};

/// Text that would end an element, run, fetch something, or change the direction of the text after it.
const HOSTILE: &str =
    "</script></pre><img src=x onerror=alert(1)><!--<script>\u{202e}\u{1b}[2J\" onfocus=\"alert(2)";

fn page_of(log: &LogBuilder) -> String {
    let sandbox = CliSandbox::new().file("log.jsonl", log.text());
    sandbox
        .run(&["log", "export", "--format", "html", "log.jsonl"])
        .assert_exit(0)
        .stdout
}

/// The page and `log show` say in the same words who approved a call.
#[test]
fn an_approval_is_named_as_in_log_show() {
    let tools =
        "tools: {pay: {input_schema: {type: object}, approve: true, command: [echo, paid]}}";
    let sandbox = CliSandbox::new()
        .tools(tools)
        .file("calls.json", model_response(&[("pay", json!({}))]));
    let script = r#"
        "$TOOLQ" plan -q --out plan.json calls.json > shown
        "$TOOLQ" run -q --log log.jsonl --plan plan.json calls.json > out
        "$TOOLQ" log show log.jsonl
        "$TOOLQ" log export --format html log.jsonl"#;
    let output = sandbox.run_shell(script).assert_exit(0).stdout;
    let words = output.split("approved by plan ").skip(1);
    let plans: Vec<&str> = words.map(|rest| &rest[..12]).collect();
    assert!(
        plans.len() >= 2 && plans.iter().all(|plan| *plan == plans[0]),
        "{plans:?}"
    );
}

/// The page says what waits, what comes from memory, and which calls that ran could change something, in the words of `log show`.
#[test]
fn runs_that_wait_for_an_approval_say_so() {
    let tools = r"tools:
  look: {input_schema: {type: object}, effect: read, command: [echo, seen]}
  note: {input_schema: {type: object}, command: [echo, noted]}
  pay: {input_schema: {type: object}, approve: true, command: [echo, paid]}";
    let calls = ["look", "note", "pay"].map(|name| (name, json!({})));
    let sandbox = CliSandbox::new()
        .tools(tools)
        .file("calls.json", model_response(&calls));
    let script = r#"
        export TOOLQ_LOG_FILE=log.jsonl
        "$TOOLQ" run -q calls.json > out; test $? = 6 || exit 9
        "$TOOLQ" approvals -q --log log.jsonl approve toolu_2
        "$TOOLQ" run -q calls.json > out
        "$TOOLQ" log show > shown && "$TOOLQ" log export --format html"#;
    let ran = sandbox.run_shell(script).assert_exit(0);
    let (page, shown) = (ran.stdout.clone(), ran.file("shown").unwrap());
    let words = [
        "exit 6 (waits for an approval) after ",
        "ok, from memory",
        "approved by `toolq approvals`",
    ];
    for text in words {
        assert!(
            page.contains(text) && shown.contains(text),
            "{text}: {shown}"
        );
    }
    let marks = page
        .matches(r#"<span class="effect">changes</span>"#)
        .count();
    assert_eq!(
        marks, 3,
        "in the legend, and for `note` and `pay`, which ran once each"
    );
}

#[test]
fn hostile_text_stays_text() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let call = log.call(turn, HOSTILE, &json!({HOSTILE: HOSTILE}));
    log.start(call, HOSTILE, 1);
    log.result(call, HOSTILE, 3, &json!(HOSTILE));
    log.session_end(session);
    let page = page_of(&log);
    assert_eq!(
        page.matches("<script").count(),
        2,
        "the data and the page's own script"
    );
    assert_eq!(page.matches("</script").count(), 2);
    assert!(!page.contains("<img") && !page.contains("<!--"), "{page}");
    assert!(
        !page.contains("\" onfocus=\""),
        "no attribute begins in a text"
    );
    assert!(!page.contains('\u{202e}') && !page.contains('\u{1b}'));
    assert!(
        page.contains("\\\\u202e"),
        "what can't be seen is written out"
    );
}

#[test]
fn only_the_script_of_the_page_can_run() {
    let mut log = LogBuilder::new();
    let session = log.session();
    log.session_end(session);
    let page = page_of(&log);
    let policy = page
        .split_once("Content-Security-Policy\" content=\"")
        .unwrap()
        .1;
    let policy = policy.split_once('"').unwrap().0;
    assert!(
        policy.starts_with("default-src 'none'; script-src 'sha256-"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");
    for outside in ["http:", "https:", "src=\"", "url(h", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

/// The clock of the log can differ from the engine's, which measured how long a call took.
#[test]
fn the_recorded_duration_counts_everywhere() {
    let mut log = LogBuilder::new();
    let session = log.session();
    for number in 0..2 {
        let turn = log.turn(session, number);
        let call = log.call(turn, "nap", &json!({}));
        log.start(call, "nap", 1);
        log.timestamp += 1_000;
        log.result(call, "nap", 250, &json!("awake"));
    }
    log.session_end(session);
    let page = page_of(&log);
    assert!(page.contains("class=\"took\">250ms<"), "{page}");
    assert!(page.contains("ok, 250ms, 20 bytes"), "{page}");
    assert!(page.contains("500ms if run one after another"), "{page}");
    assert!(!page.contains("1s if run"), "{page}");
}

/// A payment was killed and settled a minute later. What is drawn is what is known: it was in doubt, from its start.
#[test]
fn a_settled_call_is_not_drawn_as_one_that_ran_until_then() {
    let mut log = LogBuilder::new();
    let session = log.session_of_process(&process_that_is_gone());
    let turn = log.turn(session, 0);
    let call = log.call(turn, "pay", &json!({}));
    log.start(call, "pay", 1);
    log.timestamp += 1_500;
    log.call(turn, "look", &json!({}));
    log.timestamp += 60_000;
    let settled = json!({"tool_use_id": format!("toolu_{call}"), "tool_name": "pay", "done": true, "note": "asked the bank"});
    log.add_record("resolve", Some(call), &json!("paid"), &settled);
    let session = log.session();
    let turn = log.turn(session, 0);
    let recalled = log.call(turn, "pay", &json!({}));
    let memory = json!({"tool_use_id": "toolu_1", "tool_name": "pay", "is_error": false, "status": "resolved", "duration_ms": 0,
        "attempts": 0, "memory": {"log": "log.jsonl", "ended": 1}});
    log.add_record("tool_skipped", Some(recalled), &json!("paid"), &memory);
    let doubted = log.call(turn, "pay", &json!({}));
    log.end("tool_in_doubt", doubted, "pay", ("in_doubt", 0, 0));
    log.session_end(session);
    let page = page_of(&log);
    for shown in [
        "✓ ok: resolved<",
        "resolved: done (asked the bank) · after ≥ 1.5s",
        "<span class=\"took\">≥ 1.5s</span>",
        "<rect class=\"doubt\"",
        "2 ok (1 from memory, 1 resolved)",
        "answered from memory",
        "<rect class=\"point recalled\"",
        // An earlier run started it.
        "<rect class=\"point run\"",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert!(!page.contains("<rect class=\"run\" x="), "{page}");
    assert_eq!(page.matches("point never").count(), 1, "{page}");
}

/// What still runs has taken the time until now, and nothing is wrong with it.
#[test]
fn a_call_that_runs_is_drawn_until_now() {
    let mut log = LogBuilder::new();
    log.timestamp = toolq_core::os::Clock::system().now_ms() - 90_000;
    let session = log.session_of_process(&ProcessIdentity::current());
    let turn = log.turn(session, 0);
    let call = log.call(turn, "pay", &json!({}));
    log.start(call, "pay", 1);
    log.call(turn, "look", &json!({}));
    let page = page_of(&log);
    let legend = page.matches("when this page was made</span>").count();
    assert_eq!(legend, 2, "{page}");
    for shown in [
        "<span class=\"took\">1m",
        "<li id=\"call-3\" class=\"running ",
        "class=\"waiting ",
        "2 unfinished (1 running, 1 waiting)",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert!(!page.contains("class=\"troubles\""), "{page}");
}

/// Who looks at the page of a killed run reads there what to do, as in `log show`.
#[test]
fn the_page_of_a_killed_run_says_what_to_run_next() {
    let sandbox = CliSandbox::new()
        .tools("tools: {pay: {input_schema: {type: object}, command: [echo, paid]}}")
        .file("calls.json", model_response(&[("pay", json!({}))]));
    let script = r#"
        TOOLQ_FAILPOINT=start.after:1:kill "$TOOLQ" run -q --log log.jsonl calls.json
        "$TOOLQ" log show log.jsonl > shown
        "$TOOLQ" log export --format html log.jsonl"#;
    let ran = sandbox.run_shell(script).assert_exit(0);
    let (page, shown) = (ran.stdout.clone(), ran.file("shown").unwrap());
    for text in ["; run its input again", "toolq log resolve ", "log.jsonl"] {
        assert!(
            page.contains(text) && shown.contains(text),
            "{text}: {shown}\n{page}"
        );
    }
}

/// The page names each call by its id, and a link to it by the line of the log.
#[test]
fn every_call_is_on_the_page_once() {
    let calls: Vec<(&str, Value)> = (0..30)
        .map(|number| ("say", json!({"x": number.to_string()})))
        .collect();
    let script = "\"$TOOLQ\" run -q --log log.jsonl > /dev/null; \"$TOOLQ\" log export --format html log.jsonl -o page.html";
    let ran = CliSandbox::new()
        .tools(crate::log::TOOLS)
        .stdin(model_response(&calls))
        .run_shell(script)
        .assert_exit(0);
    let page = ran.file("page.html").unwrap();
    let log = parse_json_lines(&ran.file("log.jsonl").unwrap());
    let requested = log.iter().filter(|record| record["type"] == "tool_call");
    let ids: Vec<String> = requested
        .map(|record| {
            record["metadata"]["tool_use_id"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(ids.len(), 30);
    for id in ids {
        assert_eq!(
            page.matches(&format!("data-tool-use-id=\"{id}\"")).count(),
            1,
            "{id}"
        );
    }
    assert_eq!(page.matches("href=\"#call-").count(), 30);
}

/// The page of a log that is being written is loaded again by the browser, until the session has ended.
#[test]
fn a_page_follows_a_growing_log() {
    let mut log = LogBuilder::new();
    let session = log.session_of_process(&ProcessIdentity::current());
    let turn = log.turn(session, 0);
    let call = log.call(turn, "first", &json!({}));
    log.start(call, "first", 1);
    let sandbox = CliSandbox::new().file("log.jsonl", log.text());
    let path = |name: &str| sandbox.path().join(name);
    let export = [
        "log",
        "export",
        "--format",
        "html",
        "--follow",
        "log.jsonl",
        "-o",
        "page.html",
    ];
    let mut toolq = sandbox.command(&export).spawn().unwrap();
    let wait_for = |words: &str| loop {
        let page = fs::read_to_string(path("page.html")).unwrap_or_default();
        if page.contains(words) {
            return page;
        }
        thread::sleep(Duration::from_millis(10));
    };
    let refresh = "http-equiv=\"refresh\"";
    let page = wait_for("first");
    assert!(
        page.contains(refresh) && page.ends_with("</html>\n"),
        "{page}"
    );
    log.result(call, "first", 3, &json!("seen by the page"));
    fs::write(path("log.jsonl"), log.text()).unwrap();
    assert!(wait_for("seen by the page").contains(refresh));
    log.session_end(session);
    fs::write(path("log.jsonl"), log.text()).unwrap();
    assert!(toolq.wait().unwrap().success());
    let page = fs::read_to_string(path("page.html")).unwrap();
    assert!(page.contains("exit 0") && !page.contains(refresh), "{page}");
    // Nothing is left beside it.
    let mut files: Vec<_> = fs::read_dir(sandbox.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    files.sort();
    assert_eq!(files, ["log.jsonl", "page.html"]);
}

#[test]
fn only_a_page_in_a_file_follows() {
    for arguments in [
        "--format html --follow log.jsonl",
        "--format html --follow log.jsonl -o -",
        "--format html --follow - -o page.html",
        "--format trace --follow log.jsonl -o trace.json",
        "--format html --follow log.jsonl log.jsonl -o page.html",
    ] {
        let output = CliSandbox::new()
            .file("log.jsonl", LogBuilder::new().text())
            .run_shell(&format!("\"$TOOLQ\" log export {arguments}"));
        assert_eq!(output.code, 2, "{}", output.stderr);
    }
}

/// A call that was rejected belongs to no batch, so it comes after those that do. The calls of an agent have turns and
/// batches of their own.
#[test]
fn each_batch_of_several_calls_has_a_heading_and_rejected_calls_are_in_none() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let add = |log: &mut LogBuilder, turn: u64, tool: &str, batch: Value| {
        let id = format!("toolu_{tool}");
        let metadata = json!({
            "tool_use_id": id, "turn": 0, "position": 0, "batch": batch, "concurrency_safe": true,
            "reason": "effect", "input_sha256": "cd".repeat(32),
        });
        let content = json!({"name": tool, "input": {}});
        log.add_record("tool_call", Some(turn), &content, &metadata)
    };
    add(&mut log, turn, "first", json!(0));
    add(&mut log, turn, "rejected", Value::Null);
    let agent = add(&mut log, turn, "agent", json!(1));
    let agent_turn = json!({"turn": 0, "agent": "agent"});
    let inner = log.add_record("turn", Some(agent), &Value::Null, &agent_turn);
    add(&mut log, inner, "inner", json!(0));
    add(&mut log, inner, "inner_too", json!(0));
    add(&mut log, turn, "beside", json!(1));
    add(&mut log, turn, "last", json!(2));
    let page = page_of(&log);
    let rows: Vec<(&str, Option<&str>)> = page
        .split("<li ")
        .skip(1)
        .map(|row| {
            let heading = row.split_once(" data-batch=\"");
            let heading = heading.and_then(|(_, text)| text.split('"').next());
            let (_, id) = row.split_once("data-tool-use-id=\"toolu_").unwrap();
            (id.split('"').next().unwrap(), heading)
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("first", Some("batch 0: 1 call")),
            ("agent", Some("batch 1: 2 in parallel")),
            ("inner", Some("turn 1 of agent")),
            ("inner_too", None),
            ("beside", Some("batch 1, continued")),
            ("last", Some("batch 2: 1 call")),
            ("rejected", Some("in no batch")),
        ]
    );
    assert!(
        page.contains("turn 0: 5 calls, and 2 of agents; 3 batches"),
        "{page}"
    );
}

/// On a common axis, the bars of many turns would be too short to see.
#[test]
fn each_of_many_turns_has_a_scale_of_its_own() {
    for (turns, has_own) in [(20, false), (21, true)] {
        let mut log = LogBuilder::new();
        let session = log.session_of_process(&process_that_is_gone());
        for number in 0..turns {
            let turn = log.turn(session, number);
            for position in 0..2 {
                let metadata = json!({
                    "tool_use_id": format!("toolu_{number}_{position}"), "turn": number, "position": position, "batch": 0,
                    "concurrency_safe": true, "reason": "effect", "input_sha256": "cd".repeat(32),
                });
                log.add_record(
                    "tool_call",
                    Some(turn),
                    &json!({"name": "t", "input": {}}),
                    &metadata,
                );
            }
        }
        let page = page_of(&log);
        assert_eq!(
            page.contains("the bars of each turn begin when it does"),
            has_own
        );
        assert_eq!(!page.contains("class=\"axis sticky\""), has_own);
        // The calls have no end, which each title says.
        assert_eq!(page.matches(" · 2 unfinished<").count(), turns);
    }
}

/// A row says why its call failed, before it is pointed at, and the key explains each state that the page has.
#[test]
fn a_row_says_how_its_call_failed() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    for (tool, kind, status) in [
        ("slow", "tool_result", "timeout"),
        ("serch", "tool_result", "unknown_tool"),
        ("pay", "tool_skipped", "needs_approval"),
    ] {
        let call = log.call(turn, tool, &json!({}));
        log.end(kind, call, tool, (status, 2_000, 0));
    }
    log.session_end(session);
    let page = page_of(&log);
    for (state, meaning) in [
        ("failed: timeout", "did not succeed"),
        (
            "rejected: unknown tool",
            "could not run as it was requested",
        ),
        ("skipped: needs approval", "was answered without running"),
    ] {
        assert!(
            page.contains(&format!(" {state}</span>")),
            "{state}: {page}"
        );
        assert!(
            page.contains(&format!("</span>{meaning}</span>")),
            "{meaning}: {page}"
        );
    }
    assert!(!page.contains("</span>succeeded</span>"), "{page}");
    let totals =
        "3 calls · 1 failed (timeout) · 1 rejected (unknown tool) · 1 skipped (needs approval)";
    assert!(page.contains(totals), "{page}");
}

/// Each run counts its turns from 0.
#[test]
fn the_turns_of_two_runs_are_told_apart() {
    let mut log = LogBuilder::new();
    for _ in 0..2 {
        let session = log.session();
        let turn = log.turn(session, 0);
        for tool in ["look", "find"] {
            let call = log.call(turn, tool, &json!({}));
            log.end("tool_result", call, tool, ("ok", 2_000, 0));
        }
        log.session_end(session);
    }
    let page = page_of(&log);
    for run in [1, 2] {
        let title = format!("Run {run}, turn 0: 2 calls; 1 batch");
        assert_eq!(page.matches(&title).count(), 1, "{page}");
    }
    assert!(
        !page.contains("ran and failed"),
        "the key has what the page has: {page}"
    );
}

/// An agent counts its own turns, so the details of a call say whose turn they mean.
#[test]
fn the_details_of_a_call_name_the_agent_of_its_turn() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 3);
    let agent = log.call(turn, "researcher", &json!({}));
    let agent_turn = json!({"turn": 0, "agent": "researcher"});
    let agent_turn = log.add_record("turn", Some(agent), &Value::Null, &agent_turn);
    log.call(agent_turn, "search", &json!({}));
    let page = page_of(&log);
    let place = format!("in researcher (toolu_{agent}), its turn 1, position 0, batch 0");
    assert!(page.contains(&place), "{page}");
    assert!(page.contains(&format!("toolu_{agent} · turn ")), "{page}");
}
