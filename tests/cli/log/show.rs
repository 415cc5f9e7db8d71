//! `toolq log show`.

mod agents;
mod filters;
mod sessions;

use serde_json::json;

use crate::log::log_builder::LogBuilder;
use crate::log::{TOOLS, sandbox_with_five_calls};
use crate::support::{CliOutput, CliSandbox, model_response, parse_json_lines};

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
        0  missing               rejected: unknown tool
           toolu_0  {}
           Unknown tool: no tool named `missing`
           known: say, fail
           Hint: call one of the known tools by its exact name, or continue without it.
        1  say                   ok, …, 7 bytes
           toolu_1  {"x":"one\ntwo"}
           one
           two
        2  say                   ok, …, 5 bytes
           toolu_2  {"x":"three"}
           three
        3  fail                  failed: exit 3, …
           toolu_3  {}
           Exit code 3.
           no
           Hint: read its output, and change the input before calling it again.
        4  say                   skipped: not executed
           toolu_4  {"x":"never"}
           Not executed: the preceding fail call failed.
           Hint: deal with that failure first, then call this again if it is still needed.

    exit 0 after …: 5 calls: 2 ok, 1 failed, 1 rejected (unknown tool), 1 skipped (not executed)
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

/// Nothing on the screen could mean anything.
#[test]
fn a_log_without_errors_says_so() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    log.finished_call(turn, "say", "ok", 1);
    log.session_end(session);
    for (arguments, of) in [
        (&["--errors"][..], ""),
        (&["--errors", "--tool", "say"], " of say"),
    ] {
        let ran = show_log(log.text(), arguments).assert_exit(0);
        let note = format!("note: no call{of} in log.jsonl is an error\n");
        assert!(ran.stderr.ends_with(&note), "{}", ran.stderr);
    }
    let all = show_log(log.text(), &[]).assert_exit(0);
    assert_eq!(all.stderr, "");
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

/// What is before the damage can be trusted.
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
        format!("say {id}: turn 0, position 0, batch 0, parallel by effect")
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
    assert!(unknown.stderr.contains("`toolq log show log.jsonl`"));
    // Somebody may take the id of a call for one of a session.
    let unknown = CliSandbox::new()
        .run(&["log", "show", "toolu_x"])
        .assert_exit(4);
    let hint = "hint: `toolq log list` lists the sessions with their ids; `toolq log show --id ID`";
    assert!(unknown.stderr.contains(hint), "{}", unknown.stderr);
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
