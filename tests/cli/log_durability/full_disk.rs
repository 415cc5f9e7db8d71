//! Full disks and file size limits.

use std::process::Command;

use serde_json::json;

use crate::log_durability::{complete_records, count_runs, toolq};
use crate::support::{CliOutput, model_response, skip};

/// Returns calls with side effects that fill a log.
fn payments_input() -> String {
    let call = || ("pay", json!({"to": "x".repeat(100)}));
    model_response(&(0..40).map(|_| call()).collect::<Vec<_>>())
}

/// Asserts that every call has a result, that those that ran are recorded, and that the log is intact.
fn assert_paid_calls_are_logged(output: &CliOutput, log: &std::path::Path) {
    let texts = output.result_texts();
    assert_eq!(texts.len(), 40);
    let paid = texts.iter().filter(|(text, _)| text == "paid").count();
    assert_eq!(paid, count_runs(output.dir.path(), "pay"));
    assert!((1..40).contains(&paid), "{paid} of 40 ran");
    let text = std::fs::read_to_string(log).unwrap();
    assert!(text.ends_with('\n'), "{text}");
    let records = complete_records(log);
    let starts = records
        .iter()
        .filter(|record| record["type"] == "tool_start");
    assert_eq!(starts.count(), paid);
}

/// By default, exceeding a file size limit kills a process with SIGXFSZ.
#[test]
fn a_file_size_limit_is_an_error_and_not_a_signal() {
    let script = "ulimit -f 80; exec \"$TOOLQ\" run -q --log log input";
    let ended = toolq()
        .file("input", payments_input())
        .run_shell(script)
        .assert_exit(4);
    assert!(
        ended.stderr.contains("can't be written: File too large"),
        "{}",
        ended.stderr
    );
    assert_paid_calls_are_logged(&ended, &ended.dir.path().join("log"));
}

/// The other commands that write report the error too, and leave no incomplete file.
#[test]
fn every_command_reports_a_file_size_limit() {
    let killed = r#"call='[{"type":"tool_use","id":"a","name":"sh","input":{"script":"kill -9 $(cat pid); sleep 60"}}]'; printf '%s' "$call" > input; sh -c 'echo $$ > pid; exec "$TOOLQ" run -q --log log input'"#;
    let limit = r#"full() { ulimit -f "$1"; shift; exec "$TOOLQ" "$@"; };"#;
    for (command, code, message) in [
        (
            "full 0 log resolve a log --not-done".to_owned(),
            4,
            "can't be written: File too large",
        ),
        (
            "full 1 init -c new.yaml".to_owned(),
            2,
            "tools.schema.json can't be written: File too large",
        ),
        (
            "full 1 log show --format json log > out".to_owned(),
            74,
            "File too large",
        ),
        ("full 1 log prune --older 0s > out".to_owned(), 0, ""),
        (
            "full 1 generate schema > out".to_owned(),
            74,
            "File too large",
        ),
        (
            "head -c 4000 /dev/zero | tr '\\0' ' ' | full 1 run --no-log".to_owned(),
            2,
            "File too large",
        ),
    ] {
        let script = format!(
            "{limit} ({killed}); cp log before; ({command}); echo $? > code; ls log.d > entries"
        );
        let ended = toolq().run_shell(&script);
        let stderr = &ended.stderr;
        assert_eq!(
            ended.file("code").unwrap(),
            format!("{code}\n"),
            "{command}\n{stderr}"
        );
        assert!(stderr.contains(message), "{command}\n{stderr}");
        assert_eq!(ended.file("log"), ended.file("before"), "{command}");
        let entries = ended.file("entries").unwrap_or_default();
        assert!(!entries.contains(".part-"), "{command}\n{entries}");
        for file in ["new.yaml", "tools.schema.json"] {
            assert!(ended.file(file).is_none(), "{file} is incomplete");
        }
    }
}

/// Every call gets a result, the log is cut back to its last complete record, and the exit code is 4.
#[test]
fn a_full_disk_stops_calls_with_effects() {
    for size in ["16k", "28k", "40k"] {
        let toolq = toolq()
            .file("small/keep", "")
            .file("input", payments_input());
        let small = toolq.path().join("small");
        let options = format!("size={size}");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(&small)
            .output();
        if !mount.is_ok_and(|mount| mount.status.success()) {
            return skip("this user may not mount a file system");
        }
        let ended = toolq.run(&["run", "-q", "--log", "small/log", "input"]);
        let log = std::fs::read(small.join("log")).unwrap();
        std::fs::write(ended.dir.path().join("log"), log).unwrap();
        let unmounted = Command::new("umount").arg(&small).status().unwrap();
        assert!(unmounted.success());
        let ended = ended.assert_exit(4);
        // The smallest disk has no room for the input, so nothing runs.
        if size == "16k" {
            assert_eq!(count_runs(ended.dir.path(), "pay"), 0);
            assert_eq!(ended.result_texts().len(), 40);
        } else {
            assert_paid_calls_are_logged(&ended, &ended.dir.path().join("log"));
        }
    }
}
