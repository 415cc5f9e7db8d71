//! What is no log, or a damaged one, is refused before anything runs.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;

use crate::support::{Ran, Toolq, say};
use crate::{few, ran, toolq, whole_lines};

fn refused(ran_: &Ran, why: &str) {
    assert!(ran_.stderr.contains(why), "{}", ran_.stderr);
    assert_eq!(ran_.stdout, "");
    assert_eq!(ran(ran_.dir.path(), "pay"), 0);
}

fn run(toolq: Toolq, log: &str) -> Ran {
    toolq.stdin(few()).run(&["run", "-q", "--log", log])
}

/// The bytes of a log of one whole run.
fn log() -> Vec<u8> {
    let ran = run(toolq(), "log").exits(0);
    fs::read(ran.dir.path().join("log")).unwrap()
}

/// FAULTS 121.
#[test]
fn only_a_file_of_ones_own_can_be_a_log() {
    let link = toolq().file("real", "");
    symlink("real", link.path().join("log")).unwrap();
    let ran = run(link, "log").exits(4);
    refused(&ran, "is a symbolic link");
    assert_eq!(ran.file("real").unwrap(), "");

    let pipe = toolq();
    let path = pipe.path().join("log");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
    let ran = run(pipe, "log").exits(4);
    refused(&ran, "is no regular file");
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());

    refused(&run(toolq(), "/dev/null").exits(4), "is no regular file");
    refused(&run(toolq(), ".").exits(4), "is no regular file");
    refused(&run(toolq(), "nowhere/log").exits(4), "does not exist");
    refused(
        &run(toolq().file("log", "hello\n"), "log").exits(4),
        "is no session log",
    );
    refused(
        &run(toolq().file("log", "hello"), "log").exits(4),
        "is no session log",
    );

    let foreign = toolq().file("log", "");
    if chown(foreign.path().join("log"), Some(1), None).is_ok() {
        refused(&run(foreign, "log").exits(4), "belongs to another user");
    } else {
        say(format_args!("skipped: only root gives files away"));
    }
    let read_only = toolq().file("log", "");
    let path = read_only.path().join("log");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    if fs::OpenOptions::new().append(true).open(&path).is_err() {
        refused(&run(read_only, "log").exits(4), "can't be opened");
    } else {
        say(format_args!("skipped: root writes what is read-only"));
    }
}

/// FAULTS 121: what stands where large bodies would is found out before anything runs, and is what the error names.
#[test]
fn the_folder_beside_a_log_is_ones_own() {
    let refused_for = |toolq: Toolq, why: &str| {
        let ran = run(toolq, "log").exits(4);
        refused(&ran, &format!("keeps what is large in log.d, which {why}"));
        assert!(
            ran.stderr.contains("hint: put a folder of your own"),
            "{}",
            ran.stderr
        );
        assert!(ran.file("log").is_none(), "a log was begun");
    };
    refused_for(toolq().file("log.d", "mine"), "is no folder");
    let link = toolq().file("real/keep", "");
    symlink("real", link.path().join("log.d")).unwrap();
    refused_for(link, "is a symbolic link");
    let foreign = toolq().file("log.d/keep", "");
    if chown(foreign.path().join("log.d"), Some(1), None).is_ok() {
        refused_for(foreign, "belongs to another user");
    }
    run(toolq().file("log.d/keep", ""), "log").exits(0);
}

/// A file beside a log that begins as no record does is none of its ends.
#[test]
fn what_stands_beside_by_chance_is_left_alone() {
    let script = r#"echo unrelated > log.torn-0; exec "$TOOLQ" run --log log input"#;
    let ended = toolq().file("input", few()).shell(script).exits(0);
    assert!(!ended.stderr.contains("torn"), "{}", ended.stderr);
    let log = fs::read_to_string(ended.dir.path().join("log")).unwrap();
    assert!(!log.contains("recovered"), "{log}");
}

/// FAULTS 111: a body for which there is no room leaves no part of it, and its folder is named.
#[test]
fn what_is_half_written_is_taken_away() {
    let script = "ulimit -f 80; exec \"$TOOLQ\" run -q --log log input";
    let large =
        crate::support::response(&[("pay", serde_json::json!({"to": "x".repeat(200_000)}))]);
    let ended = toolq().file("input", large).shell(script).exits(4);
    let why = "the session log log can't be written: log.d: File too large";
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
    assert_eq!(ran(ended.dir.path(), "pay"), 0);
    let left = fs::read_dir(ended.dir.path().join("log.d")).unwrap();
    assert_eq!(left.count(), 0);
}

/// FAULTS 114: the line is named, and what to do.
#[test]
fn damage_is_refused_by_its_line() {
    let whole = log();
    let ends: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] == b'\n').collect();
    let mut flipped = whole.clone();
    flipped[ends[2] + 40] ^= 4;
    let gone = [&whole[..=ends[3]], &whole[ends[4] + 1..]].concat();
    let mut zeros = whole.clone();
    zeros[ends[5] + 1..ends[7]].fill(0);
    for (bytes, line) in [(flipped, 4), (gone, 5), (zeros, 7)] {
        let ran = run(toolq().file("log", &bytes), "log").exits(4);
        refused(&ran, &format!("is damaged in line {line}: "));
        // In another log all of it would run again.
        for cure in [
            "`toolq log verify log`",
            "`toolq log show log`",
            "from a copy",
        ] {
            assert!(ran.stderr.contains(cure), "{}", ran.stderr);
        }
        assert!(!ran.stderr.contains("--log"), "{}", ran.stderr);
        assert_eq!(fs::read(ran.dir.path().join("log")).unwrap(), bytes);
    }
}

/// FAULTS 109: a run that was killed while it began left the beginning of a record. The next one sets it aside.
#[test]
fn a_torn_end_is_set_aside() {
    let whole = log();
    let lines = whole.split(|byte| *byte == b'\n').count() - 1;
    let torn = br#"{"seq":15,"id":"0199"#;
    let ran = run(toolq().file("log", [&whole[..], torn].concat()), "log").exits(0);
    assert_eq!(crate::ran(ran.dir.path(), "pay"), 2);
    let aside = format!("log.torn-{lines}");
    assert_eq!(ran.file(&aside).unwrap().as_bytes(), torn);
    let records = whole_lines(&ran.dir.path().join("log"));
    assert_eq!(records[lines]["type"], "recovered");
    assert_eq!(records[lines]["metadata"]["dropped_bytes"], torn.len());
    assert_eq!(records[lines]["metadata"]["file"], aside);
}

/// FAULTS 109: nothing is set aside without a word.
#[test]
fn what_is_set_aside_is_told() {
    let whole = log();
    let lines = whole.split(|byte| *byte == b'\n').count() - 1;
    let torn = [&whole[..], b"{\"seq\""].concat();
    let toolq = toolq().file("a/log", torn).stdin(few());
    let ran = toolq.run(&["run", "--log", "a/log"]).exits(0);
    let said = format!(
        "note: the end of the session log a/log was torn; what was no whole record, 6 bytes, now stands in a/log.torn-{lines}\n"
    );
    assert!(ran.stderr.contains(&said), "{}", ran.stderr);
}

/// What stands below a folder, with its permissions; the names of folders end in `/`.
fn modes_below(folder: &Path) -> BTreeMap<String, u32> {
    let mut modes = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (name, metadata) = (
            entry.file_name().into_string().unwrap(),
            entry.metadata().unwrap(),
        );
        let mode = metadata.permissions().mode() & 0o777;
        if metadata.is_dir() {
            let below = modes_below(&entry.path()).into_iter();
            modes.extend(below.map(|(path, mode)| (format!("{name}/{path}"), mode)));
            modes.insert(format!("{name}/"), mode);
        } else {
            modes.insert(name, mode);
        }
    }
    modes
}

/// FAULTS 132: whatever the umask is, only the owner reads a log and its bodies.
#[test]
fn nobody_else_reads_a_log() {
    // Of the first the folder's own file has all, of the second a file of what was cut.
    for (umask, bytes) in ["0", "0277", "0777"]
        .into_iter()
        .flat_map(|umask| [(umask, 100_000), (umask, 2_000_000)])
    {
        let call = [("blob", serde_json::json!({ "bytes": bytes }))];
        let run = "\"$TOOLQ\" run -q input > /dev/null";
        let script = format!("umask {umask}; {run} --log log && XDG_STATE_HOME=\"$PWD/a/b\" {run}");
        let ran = toolq()
            .file("input", crate::response(&call))
            .shell(&script)
            .exits(0);
        let modes = modes_below(ran.dir.path());
        for (path, mode) in &modes {
            let made = path.starts_with("log") || path.starts_with('a');
            let expected = if path.ends_with('/') { 0o700 } else { 0o600 };
            assert!(!made || *mode == expected, "{umask} {path} {mode:o}");
        }
        let folders = ["log.d/", "a/", "a/b/", "a/b/toolq/", "a/b/toolq/sessions/"];
        assert!(
            folders.iter().all(|folder| modes.contains_key(*folder)),
            "{modes:?}"
        );
        let below = modes.keys().filter(|path| path.starts_with("log.d/"));
        assert!(below.count() > 1, "{modes:?}");
    }
}
