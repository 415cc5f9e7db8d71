//! Files that aren't logs, and damaged logs, are refused before anything runs.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;

use crate::log_durability::{complete_records, count_runs, three_calls, toolq};
use crate::support::{CliOutput, CliSandbox, skip};

fn assert_refused(output: &CliOutput, message: &str) {
    assert!(output.stderr.contains(message), "{}", output.stderr);
    assert_eq!(output.stdout, "");
    assert_eq!(count_runs(output.dir.path(), "pay"), 0);
}

fn run_with_log(toolq: CliSandbox, log: &str) -> CliOutput {
    toolq.stdin(three_calls()).run(&["run", "-q", "--log", log])
}

/// Returns the bytes of a log of one finished run.
fn finished_log_bytes() -> Vec<u8> {
    let ran = run_with_log(toolq(), "log").assert_exit(0);
    fs::read(ran.dir.path().join("log")).unwrap()
}

/// A symlink, a pipe, a device, a directory, another user's file: exit 4 before anything runs.
#[test]
fn a_log_must_be_a_regular_file_of_the_user() {
    let link = toolq().file("real", "");
    symlink("real", link.path().join("log")).unwrap();
    let ran = run_with_log(link, "log").assert_exit(4);
    assert_refused(&ran, "is a symbolic link");
    assert_eq!(ran.file("real").unwrap(), "");

    let pipe = toolq();
    let path = pipe.path().join("log");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
    let ran = run_with_log(pipe, "log").assert_exit(4);
    assert_refused(&ran, "isn't a regular file");
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());

    assert_refused(
        &run_with_log(toolq(), "/dev/null").assert_exit(4),
        "isn't a regular file",
    );
    assert_refused(
        &run_with_log(toolq(), ".").assert_exit(4),
        "isn't a regular file",
    );
    assert_refused(
        &run_with_log(toolq(), "nowhere/log").assert_exit(4),
        "doesn't exist",
    );
    assert_refused(
        &run_with_log(toolq().file("log", "hello\n"), "log").assert_exit(4),
        "isn't a toolq session log",
    );
    assert_refused(
        &run_with_log(toolq().file("log", "hello"), "log").assert_exit(4),
        "isn't a toolq session log",
    );

    let foreign = toolq().file("log", "");
    if chown(foreign.path().join("log"), Some(1), None).is_ok() {
        assert_refused(
            &run_with_log(foreign, "log").assert_exit(4),
            "belongs to another user",
        );
    } else {
        skip("only a superuser can change the owner of a file");
    }
    let read_only = toolq().file("log", "");
    let path = read_only.path().join("log");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    if fs::OpenOptions::new().append(true).open(&path).is_err() {
        assert_refused(
            &run_with_log(read_only, "log").assert_exit(4),
            "can't be opened",
        );
    } else {
        skip("a superuser can write read-only files");
    }
}

/// The blob directory is checked before anything runs. The error names it.
#[test]
fn the_blob_directory_must_belong_to_the_user() {
    let refused_for = |toolq: CliSandbox, reason: &str| {
        let ran = run_with_log(toolq, "log").assert_exit(4);
        assert_refused(
            &ran,
            &format!("stores large content in log.d, which {reason}"),
        );
        assert!(
            ran.stderr
                .contains("hint: replace it with a directory of your own"),
            "{}",
            ran.stderr
        );
        assert!(ran.file("log").is_none(), "a log was created");
    };
    refused_for(toolq().file("log.d", "mine"), "isn't a directory");
    let link = toolq().file("real/keep", "");
    symlink("real", link.path().join("log.d")).unwrap();
    refused_for(link, "is a symbolic link");
    let foreign = toolq().file("log.d/keep", "");
    if chown(foreign.path().join("log.d"), Some(1), None).is_ok() {
        refused_for(foreign, "belongs to another user");
    }
    run_with_log(toolq().file("log.d/keep", ""), "log").assert_exit(0);
}

/// A file that is named like a torn end but doesn't begin like a record isn't one.
#[test]
fn an_unrelated_torn_file_is_left_alone() {
    let script = r#"echo unrelated > log.torn-0; exec "$TOOLQ" run --log log input"#;
    let ended = toolq()
        .file("input", three_calls())
        .run_shell(script)
        .assert_exit(0);
    assert!(!ended.stderr.contains("torn"), "{}", ended.stderr);
    let log = fs::read_to_string(ended.dir.path().join("log")).unwrap();
    assert!(!log.contains("recovered"), "{log}");
}

/// A blob that can't be written completely is removed. The error names the blob directory.
#[test]
fn a_partially_written_blob_is_removed() {
    let script = "ulimit -f 80; exec \"$TOOLQ\" run -q --log log input";
    // A stream, which needs no file of its own.
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"pay","input":{}}}"#;
    let input = serde_json::json!({"to": "x".repeat(200_000)}).to_string();
    let input = serde_json::json!({"type": "input_json_delta", "partial_json": input});
    let events = [
        r#"{"type":"message_start","message":{"content":[]}}"#.to_owned(),
        start.to_owned(),
        format!(r#"{{"type":"content_block_delta","index":0,"delta":{input}}}"#),
        r#"{"type":"content_block_stop","index":0}"#.to_owned(),
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#.to_owned(),
        r#"{"type":"message_stop"}"#.to_owned(),
    ];
    let large = format!("data: {}\n\n", events.join("\n\ndata: "));
    let ended = toolq()
        .file("input", large)
        .run_shell(script)
        .assert_exit(4);
    let message = "the session log log can't be written: log.d: File too large";
    assert!(ended.stderr.contains(message), "{}", ended.stderr);
    assert_eq!(count_runs(ended.dir.path(), "pay"), 0);
    let remaining = fs::read_dir(ended.dir.path().join("log.d")).unwrap();
    assert_eq!(remaining.count(), 0);
}

/// The error names the corrupt line and says what to do.
#[test]
fn a_corrupt_log_is_refused_with_its_line() {
    let intact = finished_log_bytes();
    let ends: Vec<usize> = (0..intact.len())
        .filter(|at| intact[*at] == b'\n')
        .collect();
    let mut flipped = intact.clone();
    flipped[ends[2] + 40] ^= 4;
    let missing_line = [&intact[..=ends[3]], &intact[ends[4] + 1..]].concat();
    let mut zeros = intact.clone();
    zeros[ends[5] + 1..ends[7]].fill(0);
    for (bytes, line) in [(flipped, 4), (missing_line, 5), (zeros, 7)] {
        let ran = run_with_log(toolq().file("log", &bytes), "log").assert_exit(4);
        assert_refused(&ran, &format!("is damaged at line {line}: "));
        // It doesn't suggest another log, with which all calls would run again.
        for hint in [
            "`toolq log verify log`",
            "`toolq log show log`",
            "from a copy",
        ] {
            assert!(ran.stderr.contains(hint), "{}", ran.stderr);
        }
        assert!(!ran.stderr.contains("--log"), "{}", ran.stderr);
        assert_eq!(fs::read(ran.dir.path().join("log")).unwrap(), bytes);
    }
}

/// A run that was killed while writing may leave an incomplete record. The next run moves it to a separate file.
#[test]
fn a_torn_tail_is_set_aside() {
    let intact = finished_log_bytes();
    let lines = intact.split(|byte| *byte == b'\n').count() - 1;
    let torn = br#"{"seq":15,"id":"0199"#;
    let toolq = toolq().file("log", [&intact[..], torn].concat());
    let arguments = ["run", "--new", "--log", "log"];
    let ran = toolq.stdin(three_calls()).run(&arguments).assert_exit(0);
    assert_eq!(count_runs(ran.dir.path(), "pay"), 2);
    let aside = format!("log.torn-{lines}");
    assert_eq!(ran.file(&aside).unwrap().as_bytes(), torn);
    let records = complete_records(&ran.dir.path().join("log"));
    assert_eq!(records[lines]["type"], "recovered");
    assert_eq!(records[lines]["metadata"]["dropped_bytes"], torn.len());
    assert_eq!(records[lines]["metadata"]["file"], aside);
}

/// The user learns what was incomplete, and where it is now.
#[test]
fn setting_a_torn_tail_aside_is_reported() {
    let intact = finished_log_bytes();
    let lines = intact.split(|byte| *byte == b'\n').count() - 1;
    let torn = [&intact[..], b"{\"seq\""].concat();
    let toolq = toolq().file("a/log", torn).stdin(three_calls());
    let ran = toolq
        .run(&["run", "--new", "--log", "a/log"])
        .assert_exit(0);
    let note = format!(
        "note: the end of the session log a/log was torn; moved 6 bytes of an incomplete record to a/log.torn-{lines}\n"
    );
    assert!(ran.stderr.contains(&note), "{}", ran.stderr);
}

/// Returns the paths below a directory with their permissions. The paths of directories end in `/`.
fn modes_in(dir: &Path) -> BTreeMap<String, u32> {
    let mut modes = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let (name, metadata) = (
            entry.file_name().into_string().unwrap(),
            entry.metadata().unwrap(),
        );
        // The permissions of a link say nothing.
        if metadata.is_symlink() {
            continue;
        }
        let mode = metadata.permissions().mode() & 0o777;
        if metadata.is_dir() {
            let nested = modes_in(&entry.path()).into_iter();
            modes.extend(nested.map(|(path, mode)| (format!("{name}/{path}"), mode)));
            modes.insert(format!("{name}/"), mode);
        } else {
            modes.insert(name, mode);
        }
    }
    modes
}

/// Whatever the umask, only the owner can read a log and its blobs.
#[test]
fn logs_are_private_whatever_the_umask() {
    // The first output is stored as a blob. The second is truncated, and its full text is saved in another file.
    for (umask, bytes) in ["0", "0277", "0777"]
        .into_iter()
        .flat_map(|umask| [(umask, 100_000), (umask, 2_000_000)])
    {
        let call = [("blob", serde_json::json!({ "bytes": bytes }))];
        let run = "\"$TOOLQ\" run -q input > /dev/null";
        let script = format!("umask {umask}; {run} --log log && XDG_STATE_HOME=\"$PWD/a/b\" {run}");
        let ran = toolq()
            .file("input", crate::log_durability::model_response(&call))
            .run_shell(&script)
            .assert_exit(0);
        let modes = modes_in(ran.dir.path());
        for (path, mode) in &modes {
            let is_created = path.starts_with("log") || path.starts_with('a');
            let expected = if path.ends_with('/') { 0o700 } else { 0o600 };
            assert!(!is_created || *mode == expected, "{umask} {path} {mode:o}");
        }
        let dirs = ["log.d/", "a/", "a/b/", "a/b/toolq/", "a/b/toolq/sessions/"];
        assert!(dirs.iter().all(|dir| modes.contains_key(*dir)), "{modes:?}");
        let blobs = modes.keys().filter(|path| path.starts_with("log.d/"));
        assert!(blobs.count() > 1, "{modes:?}");
    }
}

#[test]
fn an_existing_log_keeps_its_mode() {
    let run = "\"$TOOLQ\" run -q --new --log log input > /dev/null";
    let ran = toolq()
        .file(
            "input",
            crate::log_durability::model_response(&[("blob", serde_json::json!({"bytes": 1}))]),
        )
        .run_shell(&format!("{run}; chmod 644 log; {run}"))
        .assert_exit(0);
    assert_eq!(modes_in(ran.dir.path())["log"], 0o644);
}
