//! How the output of a program is captured, checked and masked, and what it reports while it runs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use toolq_core::types::{CallOutput, CaptureStats, Outcome, OutputKind, ResultContent, StderrUse};

use crate::support::engine_turn::{TestTurn, shell_call};

/// A program doesn't have to read its stdin, write anything, or keep its pipes open.
#[test]
fn pipes_may_be_ignored_and_closed() {
    let large = format!(r#"{{"x":"{}"}}"#, "x".repeat(1 << 20));
    for script in [
        "echo fine",
        "exec <&-; echo fine",
        "echo fine; exec >&-; sleep 0.05",
        "echo fine; exec >&- 2>&- 3>&-; sleep 0.05",
    ] {
        assert_eq!(
            shell_call(script, &[]).input(&large).run().text(),
            "fine",
            "{script}"
        );
    }
    assert_eq!(
        shell_call("wc -c", &[]).input(&large).run().text().trim(),
        large.len().to_string()
    );
    let ignores_stdin = shell_call("sleep 1000", &[])
        .input(&large)
        .timeout(100, 20_000)
        .run();
    assert!(matches!(ignores_stdin.outcome(), Outcome::TimedOut { .. }));
}

/// The model reads what people would see, and the file has all of it, unless the tool wants it raw.
#[test]
fn colors_and_overwritten_lines_are_not_shown() {
    let script = r"for i in 1 2 3 4 5 6 7 8 9; do printf '\r\033[32m%s0%%\033[0m' $i; done; printf '\n\033[1mhun\033[0mter2-secret\n'; printf '\033[31mwarning\033[0m\n' >&2";
    let call = |raw: bool| shell_call(script, &[]).tool(|tool| tool.raw_output = raw);
    let run = |call| {
        TestTurn::default()
            .secret("hunter2-secret")
            .call(call)
            .run()
    };
    assert_eq!(run(call(false)).text(), "90%\n[masked]");
    assert!(run(call(true)).text().starts_with("\r\u{1b}[32m10%"));
    let dir = tempfile::tempdir().unwrap();
    let cut = shell_call(
        "printf 'first\\rsecond\\n'; seq 1000; printf 'last\\b\\b\\n'",
        &[],
    );
    let cut = cut.tool(|tool| tool.max_output = 100);
    let ran = TestTurn::default()
        .outputs(dir.path().to_owned())
        .call(cut)
        .run();
    let saved = ran
        .outcome()
        .captured()
        .unwrap()
        .saved_path
        .clone()
        .unwrap();
    let saved = fs::read_to_string(*saved).unwrap();
    assert!(
        saved.starts_with("first\rsecond\n1\n") && saved.ends_with("last\u{8}\u{8}\n"),
        "{saved}"
    );
    assert!(ran.text().starts_with("second\n1\n"), "{}", ran.text());
    // What is shown whole isn't saved.
    let bar = shell_call("for i in $(seq 1000); do printf '\\r%s' $i; done", &[]);
    let bar = bar.tool(|tool| tool.max_output = 100);
    let ran = TestTurn::default()
        .outputs(dir.path().to_owned())
        .call(bar)
        .run();
    assert_eq!(ran.text(), "1000");
    assert_eq!(ran.outcome().captured().unwrap().saved_path, None);
}

#[test]
fn stderr_is_shown_when_the_tool_says_so() {
    for (policy, script, expected) in [
        (StderrUse::OnFailure, "echo out; echo err >&2", "out"),
        (StderrUse::OnFailure, "echo err >&2", "stderr:\nerr"),
        (
            StderrUse::Always,
            "echo out; echo err >&2",
            "out\nstderr:\nerr",
        ),
        (StderrUse::Always, "echo err >&2", "stderr:\nerr"),
        (StderrUse::Always, "echo out", "out"),
        (StderrUse::Never, "echo err >&2", ""),
        (StderrUse::Never, "echo out; echo err >&2", "out"),
    ] {
        let call = shell_call(script, &[]).command_backing(|backing| backing.stderr = policy);
        assert_eq!(call.run().text(), expected, "{policy:?} {script}");
    }
}

/// A flood of output is drained and counted. Only its head and tail are kept.
#[test]
fn large_outputs_are_truncated_and_counted() {
    let script = "yes 0123456789 | head -c 3000000; yes error | head -c 300000 >&2; exit 3";
    let ran = shell_call(script, &[])
        .tool(|tool| tool.max_output = 1000)
        .run();
    match ran.outcome() {
        Outcome::Failed { output, .. } => {
            let CallOutput {
                text,
                stderr,
                captured,
            } = output;
            assert_eq!(text.len(), 1000);
            assert!(text.starts_with("0123456789\n0123"));
            assert_eq!(
                (
                    captured.total_bytes,
                    captured.cut_bytes,
                    captured.cut_offset
                ),
                (3_000_000, 2_999_000, 500)
            );
            assert_eq!(captured.saved_path, None);
            assert!(stderr.len() <= 4096 && stderr.ends_with("error"));
        }
        other => panic!("{other:?}"),
    }
}

/// The full text of truncated output is saved in a file that only its owner can read.
#[test]
fn truncated_output_is_saved_in_full() {
    let temp_dir = tempfile::tempdir().unwrap();
    let outputs = temp_dir.path().join("new").join("outputs");
    let saved = |bytes: usize, max_saved: u64| {
        let script = format!("head -c {bytes} /dev/zero | tr '\\0' x");
        let call = shell_call(&script, &[]).tool(|tool| {
            tool.max_output = 100;
            tool.max_saved = max_saved;
        });
        let ran = TestTurn::default()
            .outputs(outputs.clone())
            .call(call)
            .run();
        ran.outcome().captured().cloned().unwrap()
    };
    for bytes in [99, 100] {
        assert_eq!(
            saved(bytes, 1 << 20),
            CaptureStats {
                total_bytes: bytes as u64,
                cut_offset: bytes,
                ..CaptureStats::default()
            }
        );
    }
    assert!(!outputs.exists());
    for (bytes, max_saved, kept) in [
        (101, 1 << 20, 101),
        (100_000, 1 << 20, 100_000),
        (100_000, 5_000, 5_000),
    ] {
        let captured = saved(bytes, max_saved);
        assert_eq!(captured.cut_bytes, bytes as u64 - 100);
        let path = *captured.saved_path.unwrap();
        assert_eq!(fs::read(&path).unwrap(), "x".repeat(kept).as_bytes());
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
    assert_eq!(
        fs::metadata(&outputs).unwrap().permissions().mode() & 0o777,
        0o700
    );
    assert_eq!(fs::read_dir(&outputs).unwrap().count(), 3);
}

/// Invalid bytes become U+FFFD.
#[test]
fn invalid_utf8_is_replaced_and_marked_lossy() {
    let ran = shell_call("printf 'a\\377b\\000c'", &[]).run();
    assert_eq!(ran.text(), "a\u{FFFD}b\0c");
    assert!(ran.outcome().captured().unwrap().lossy);
}

#[test]
fn json_is_compact_and_checked() {
    let json = |script: &str| {
        shell_call(script, &[])
            .tool(|tool| tool.output = OutputKind::Json)
            .run()
    };
    let good =
        json("printf '{ \"a b\": [1.00, 12345678901234567890123 ],\\n \"c\": \"x\\\\\" y\"}\\n'");
    assert_eq!(
        good.text(),
        r#"{"a b":[1.00,12345678901234567890123],"c":"x\" y"}"#
    );
    for script in [
        "echo '{'",
        "echo '{} {}'",
        "printf ''",
        "printf '\"\\377\"'",
    ] {
        assert!(
            matches!(json(script).outcome(), Outcome::BadOutput { .. }),
            "{script}"
        );
    }
}

#[test]
fn an_empty_output_is_the_json_that_the_tool_declares() {
    let json = |script: &str, empty: Option<&str>| {
        shell_call(script, &[])
            .tool(|tool| {
                tool.output = OutputKind::Json;
                tool.empty_output = empty.map(str::to_owned);
            })
            .run()
    };
    assert_eq!(json(":", Some("[ ]")).text(), "[]");
    assert_eq!(json("echo", Some("[]")).text(), "[]");
    assert_eq!(json("echo '[1]'", Some("[]")).text(), "[1]");
    match json(":", None).outcome() {
        Outcome::BadOutput { problem, .. } => assert_eq!(problem, "the output is empty"),
        other => panic!("{other:?}"),
    }
}

/// Output that should have been JSON usually explains what went wrong, so its head and tail are kept.
#[test]
fn output_that_is_not_json_is_kept_for_diagnosis() {
    let script = "echo 'token expired' >&2; echo '<html>'; head -c 100000 /dev/zero | tr '\\0' x; echo '</html>'";
    let ran = shell_call(script, &[])
        .tool(|tool| tool.output = OutputKind::Json)
        .run();
    match ran.outcome() {
        Outcome::BadOutput { output, .. } => {
            let CallOutput {
                text,
                stderr,
                captured,
            } = output;
            assert_eq!(stderr, "token expired");
            assert!(text.starts_with("<html>\nx") && text.ends_with("x</html>"));
            assert_eq!((captured.total_bytes, text.len()), (100_015, 4_096));
            // The trailing newline is removed, which doesn't count as truncation.
            assert_eq!(captured.cut_bytes, 100_014 - 4_096);
        }
        other => panic!("{other:?}"),
    }
}

/// Content blocks are passed on verbatim, so they must be valid for every consumer of the results.
#[test]
fn content_blocks_are_checked() {
    let blocks = |json: &str| {
        shell_call("printf %s \"$1\"", &[json])
            .tool(|tool| tool.output = OutputKind::Content)
            .run()
    };
    let good = r#"[{"type":"text","text":"x"},{"type":"image","source":{"type":"base64"}}]"#;
    match blocks(good).outcome() {
        Outcome::Succeeded {
            content: ResultContent::Blocks(blocks),
            ..
        } => assert_eq!(blocks.len(), 2),
        other => panic!("{other:?}"),
    }
    let of_mcp = r#"[{"type":"image","mimeType":"image/png","data":"AA=="},{"type":"audio","mimeType":"audio/wav","data":"AA=="},{"type":"resource","resource":{"uri":"a:b","text":"c"}},{"type":"resource_link","uri":"a:b","name":"c"}]"#;
    match blocks(of_mcp).outcome() {
        Outcome::Succeeded {
            content: ResultContent::Blocks(blocks),
            ..
        } => assert_eq!(
            (blocks.len(), blocks[0].get()),
            (
                4,
                r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}"#
            )
        ),
        other => panic!("{other:?}"),
    }
    for bad in [
        "{}",
        "[1]",
        r#"[{"type":"tool_use"}]"#,
        r#"[{"type":"audio","source":{}}]"#,
        r#"[{"type":"resource","resource":{"uri":"a:b"}}]"#,
        r#"[{"type":"resource_link","uri":"a:b"}]"#,
        r#"[{"type":"text"}]"#,
        r#"[{"type":"text","text":1}]"#,
        r#"[{"type":"text","text":"\ud800"}]"#,
        r#"[{"type":"text","text":"a","text":"b"}]"#,
        r#"[{"type":"text","text":"a","n":1e400}]"#,
        &format!(
            r#"[{{"type":"text","text":"a","n":{}{}}}]"#,
            "[".repeat(100),
            "]".repeat(100)
        ),
    ] {
        assert!(
            matches!(blocks(bad).outcome(), Outcome::BadOutput { .. }),
            "{bad}"
        );
    }
}

/// Secrets that a tool prints are masked everywhere, even if truncation would split one.
#[test]
fn secrets_are_masked_at_the_source() {
    let temp_dir = tempfile::tempdir().unwrap();
    let script = "printf '{\"tip\":\"hunter-22\"}\\n' >&3; printf 'xxxxxxxxxxhunter-22xxxxxxxxxxhunter-22'; \
                  printf 'hunter-22' >&2; exit 1";
    let call = shell_call(script, &[]).tool(|tool| tool.max_output = 20);
    let ran = TestTurn::default()
        .secret("hunter-22")
        .outputs(temp_dir.path().to_owned())
        .call(call)
        .run();
    match ran.outcome() {
        Outcome::Failed { output, .. } => {
            let streams = (&*output.text, &*output.stderr);
            assert_eq!(streams, ("xxxxxxxxxxxx[masked]", "[masked]"));
            let full_output =
                fs::read_to_string(output.captured.saved_path.as_deref().unwrap()).unwrap();
            assert_eq!(full_output, "xxxxxxxxxx[masked]xxxxxxxxxx[masked]");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(ran.statuses, [(Some("[masked]".to_owned()), None)]);
}

/// A flood or noise on the status descriptor is drained and ignored.
#[test]
fn status_lines_are_not_part_of_the_result() {
    let script = "echo '{\"tip\":\"halfway\",\"progress\":0.5}' >&$TOOLQ_STATUS_FD; cat >/dev/null; echo result";
    let ran = shell_call(script, &[]).run();
    assert_eq!(ran.text(), "result");
    assert_eq!(ran.statuses, [(Some("halfway".to_owned()), Some(0.5))]);
    let flood = shell_call(
        "yes '{\"tip\":\"x\"}' | head -c 5000000 >&3; head -c 5000000 /dev/zero >&3; echo fine",
        &[],
    );
    assert_eq!(flood.run().text(), "fine");
}

#[test]
fn a_slow_call_reports_that_it_is_still_running() {
    let temp_dir = tempfile::tempdir().unwrap();
    let status_marker = temp_dir.path().join("status-seen");
    let script = "while ! [ -e $1 ]; do sleep 0.01; done";
    let slow = shell_call(script, &[status_marker.to_str().unwrap()])
        .tool(|tool| tool.timeout.slow_after = Some(Duration::from_millis(10)));
    let ran = TestTurn::default()
        .call(slow)
        .touch_on_status(status_marker)
        .run();
    assert_eq!(
        ran.statuses,
        [(Some("still running after 10ms".to_owned()), None)]
    );
}
