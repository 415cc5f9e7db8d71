//! The disk is full, or files may not grow.

use std::process::Command;

use serde_json::json;

use crate::support::{Ran, response, say};
use crate::{ran, toolq, whole_lines};

/// Calls that fill a log, each of which does something.
fn many() -> String {
    let call = || ("pay", json!({"to": "x".repeat(100)}));
    response(&(0..40).map(|_| call()).collect::<Vec<_>>())
}

/// Every call is answered; those that ran are all on record, and the log is whole.
fn check(ended: &Ran, log: &std::path::Path) {
    let texts = ended.texts();
    assert_eq!(texts.len(), 40);
    let paid = texts.iter().filter(|(text, _)| text == "paid").count();
    assert_eq!(paid, ran(ended.dir.path(), "pay"));
    assert!((1..40).contains(&paid), "{paid} of 40 ran");
    let text = std::fs::read_to_string(log).unwrap();
    assert!(text.ends_with('\n'), "{text}");
    let records = whole_lines(log);
    let starts = records
        .iter()
        .filter(|record| record["type"] == "tool_start");
    assert_eq!(starts.count(), paid);
}

/// FAULTS 111: a limit of file sizes ends what it must, and not by a signal.
#[test]
fn files_may_not_grow() {
    let script = "ulimit -f 80; exec \"$TOOLQ\" run -q --log log input";
    let ended = toolq().file("input", many()).shell(script).exits(4);
    assert!(
        ended.stderr.contains("can't be written: File too large"),
        "{}",
        ended.stderr
    );
    check(&ended, &ended.dir.path().join("log"));
}

/// FAULTS 111: every other command that writes says so as well, and leaves no half of anything.
#[test]
fn no_command_dies_of_a_file_that_may_not_grow() {
    let killed = r#"call='[{"type":"tool_use","id":"a","name":"sh","input":{"script":"kill -9 $(cat pid); sleep 60"}}]'; printf '%s' "$call" > input; sh -c 'echo $$ > pid; exec "$TOOLQ" run -q --log log input'"#;
    let limit = r#"full() { ulimit -f "$1"; shift; exec "$TOOLQ" "$@"; };"#;
    let at_log = r"$(( $(wc -c < log) / 512 ))";
    for (command, code, why) in [
        (
            format!("full {at_log} log resolve a log --not-done"),
            4,
            "the session log log can't be written: File too large",
        ),
        (
            "full 1 init -c new.yaml".to_owned(),
            2,
            "new.yaml can't be written: File too large",
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
        let script = format!("{limit} ({killed}); cp log before; ({command}); echo $? > code");
        let ended = toolq().shell(&script);
        let said = &ended.stderr;
        assert_eq!(
            ended.file("code").unwrap(),
            format!("{code}\n"),
            "{command}\n{said}"
        );
        assert!(said.contains(why), "{command}\n{said}");
        assert_eq!(ended.file("log"), ended.file("before"), "{command}");
        assert!(ended.file("new.yaml").is_none(), "a half of it is there");
    }
}

/// FAULTS 111: a disk of 16 KiB, and of some more.
#[test]
fn the_disk_is_full() {
    let mut filled = 0;
    for size in ["16k", "28k", "40k"] {
        let toolq = toolq().file("small/keep", "").file("input", many());
        let small = toolq.path().join("small");
        let options = format!("size={size}");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(&small)
            .output();
        if !mount.is_ok_and(|mount| mount.status.success()) {
            say(format_args!("skipped: no file system may be mounted here"));
            return;
        }
        let ended = toolq.run(&["run", "-q", "--log", "small/log", "input"]);
        let log = std::fs::read(small.join("log")).unwrap();
        std::fs::write(ended.dir.path().join("log"), log).unwrap();
        let unmounted = Command::new("umount").arg(&small).status().unwrap();
        assert!(unmounted.success());
        let ended = ended.exits(4);
        // The smallest has no room for what was asked: nothing runs.
        if size == "16k" {
            assert_eq!(ran(ended.dir.path(), "pay"), 0);
            assert_eq!(ended.texts().len(), 40);
        } else {
            check(&ended, &ended.dir.path().join("log"));
        }
        filled += 1;
    }
    say(format_args!("filled {filled} disks"));
}
