//! `toolq log prune`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::log::log_builder::LogBuilder;
use crate::support::{CliOutput, CliSandbox};

const SECONDS_PER_DAY: u64 = 86_400;

/// A directory of sessions.
struct SessionsDir {
    toolq: CliSandbox,
}

impl SessionsDir {
    fn new() -> Self {
        Self {
            toolq: CliSandbox::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.toolq.path().join("state/toolq/sessions").join(name)
    }

    /// Adds a session that is `days` days old.
    fn add_session(&self, name: &str, days: u64, is_finished: bool) -> PathBuf {
        let written = SystemTime::now() - Duration::from_secs(days * SECONDS_PER_DAY);
        let mut log = LogBuilder::new();
        let since = written.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        log.timestamp = u64::try_from(since.as_millis()).unwrap();
        let session = log.session();
        if is_finished {
            log.session_end(session);
        }
        let path = self.path(name);
        log.write_to(&path);
        set_modified(&path, written);
        path
    }

    fn prune(self, arguments: &[&str]) -> CliOutput {
        self.toolq.run(&[&["log", "prune"], arguments].concat())
    }
}

fn set_modified(path: &Path, written: SystemTime) {
    let file = File::options().append(true).open(path).unwrap();
    file.set_modified(written).unwrap();
}

fn remaining_files(ran: &CliOutput) -> Vec<String> {
    file_names(&ran.dir.path().join("state/toolq/sessions"))
}

fn remaining_sessions(sessions: &SessionsDir) -> Vec<String> {
    file_names(&sessions.path(""))
}

fn file_names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Creates sessions of every kind. Only the first one is old, finished, and not in use. The returned file holds a lock.
fn sessions_of_every_kind() -> (SessionsDir, File) {
    let sessions = SessionsDir::new();
    let old = sessions.add_session("a-old.jsonl", 40, true);
    fs::create_dir(sessions.path("a-old.jsonl.d")).unwrap();
    let body = format!("a-old.jsonl.d/{}", "0".repeat(64));
    fs::write(sessions.path(&body), "x".repeat(5_000)).unwrap();
    fs::write(sessions.path("a-old.jsonl.torn-7"), "x".repeat(500)).unwrap();
    fs::write(sessions.path("a-older.jsonl.torn-7"), "").unwrap();
    assert!(old.exists());
    sessions.add_session("b-young.jsonl", 20, true);
    sessions.add_session("c-unfinished.jsonl", 40, false);
    let locked = File::open(sessions.add_session("d-used.jsonl", 40, true)).unwrap();
    locked.lock().unwrap();
    let damaged = sessions.add_session("e-damaged.jsonl", 40, true);
    let text = fs::read_to_string(&damaged).unwrap();
    fs::write(&damaged, text.replace("/work", "/wurk")).unwrap();
    set_modified(
        &damaged,
        SystemTime::now() - Duration::from_secs(40 * SECONDS_PER_DAY),
    );
    fs::write(sessions.path("f-other.txt"), "").unwrap();
    // The file is old, but its records aren't.
    let copied = sessions.add_session("g-copied.jsonl", 1, true);
    set_modified(
        &copied,
        SystemTime::now() - Duration::from_secs(40 * SECONDS_PER_DAY),
    );
    // The records are old, but their file isn't.
    let touched = sessions.add_session("h-touched.jsonl", 40, true);
    set_modified(&touched, SystemTime::now());
    (sessions, locked)
}

const KEPT_FILES: [&str; 8] = [
    "a-older.jsonl.torn-7",
    "b-young.jsonl",
    "c-unfinished.jsonl",
    "d-used.jsonl",
    "e-damaged.jsonl",
    "f-other.txt",
    "g-copied.jsonl",
    "h-touched.jsonl",
];

#[test]
fn only_old_finished_unused_sessions_are_removed() {
    let (sessions, _locked) = sessions_of_every_kind();
    let ran = sessions.prune(&["--older", "30d"]).assert_exit(0);
    assert_eq!(remaining_files(&ran), KEPT_FILES);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(
        lines[0].starts_with("removed /") && lines[0].contains("a-old.jsonl (40 days old, "),
        "{lines:?}"
    );
    assert!(lines[1].starts_with("removed 1 session, "), "{lines:?}");
    assert!(lines[1].ends_with(" KiB") && lines.len() == 2, "{lines:?}");
    assert!(
        ran.stderr.contains("kept 1 unfinished session"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("kept 1 session in use"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("warning: not removed: ") && ran.stderr.contains("e-damaged.jsonl"),
        "{}",
        ran.stderr
    );
}

/// A finished session with a call in doubt may be the only record of a payment. `--unfinished` removes it all the same.
#[test]
fn sessions_in_doubt_are_kept() {
    for (flag, remaining) in [("", 1), ("--unfinished", 0)] {
        let tools = "version: 1\ntools:\n  pay:\n    input_schema: {type: object}\n    command: [sh, -c, 'test -e dead || { touch dead; kill -9 $(cat pid); sleep 60; }; echo paid']\n";
        let input = crate::support::model_response(&[("pay", serde_json::json!({}))]);
        let toolq = CliSandbox::new().tools(tools).file("in.json", &input);
        let ran = toolq.run_shell(&format!(
            r#"sh -c 'echo $$ > pid; exec "$TOOLQ" run -q in.json'; "$TOOLQ" run -q --resume in.json; echo "exit $?"; "$TOOLQ" log prune --older 0s {flag}"#
        ));
        assert!(ran.stdout.contains("exit 3"), "{}", ran.stdout);
        let logs = remaining_files(&ran)
            .into_iter()
            .filter(|name| name.strip_suffix(".jsonl").is_some());
        assert_eq!(logs.count(), remaining, "{}", ran.stderr);
        let is_reported = ran.stderr.contains("kept 1 session with calls in doubt");
        assert_eq!(is_reported, remaining == 1, "{}", ran.stderr);
    }
}

/// Resolving a call after the session has ended doesn't make the session unfinished. Files that toolq didn't create
/// aren't removed.
#[test]
fn a_resolved_session_is_removed_unless_it_holds_foreign_files() {
    let tools = "version: 1\ntools:\n  pay:\n    input_schema: {type: object}\n    command: [sh, -c, 'kill -9 $(cat pid); sleep 60']\n";
    let input = crate::support::model_response(&[("pay", serde_json::json!({}))]);
    for (add_foreign_file, kept) in [("", 0), ("mkdir $log.d; echo x > $log.d/notes; ", 1)] {
        let toolq = CliSandbox::new().tools(tools).file("in.json", &input);
        let ran = toolq.run_shell(&format!(
            r#"sh -c 'echo $$ > pid; exec "$TOOLQ" run -q in.json'; "$TOOLQ" run -q --resume in.json; "$TOOLQ" log resolve toolu_0 --not-done; log=$(echo state/toolq/sessions/*.jsonl); {add_foreign_file}"$TOOLQ" log prune --older 0s"#
        ));
        let logs = remaining_files(&ran);
        let logs = logs
            .iter()
            .filter(|name| name.strip_suffix(".jsonl").is_some());
        assert_eq!(logs.count(), kept, "{}", ran.stderr);
        let has_blob_dir = remaining_files(&ran)
            .iter()
            .any(|name| name.strip_suffix(".d").is_some());
        assert_eq!(has_blob_dir, kept == 1, "{}", ran.stderr);
        // The log is still there, and the warning doesn't say otherwise.
        let warning = "contains files that toolq did not create";
        assert_eq!(ran.stderr.contains(warning), kept == 1, "{}", ran.stderr);
        assert!(!ran.stderr.contains("has no log"), "{}", ran.stderr);
    }
}

#[test]
fn a_dry_run_removes_nothing() {
    let (sessions, _locked) = sessions_of_every_kind();
    let ran = sessions
        .prune(&["--older", "30d", "--dry-run"])
        .assert_exit(0);
    assert_eq!(remaining_files(&ran).len(), KEPT_FILES.len() + 3);
    assert!(ran.stdout.starts_with("would remove /"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("\nwould remove 1 session, "),
        "{}",
        ran.stdout
    );
}

#[test]
fn unfinished_sessions_are_removed_on_request() {
    let (sessions, _locked) = sessions_of_every_kind();
    let ran = sessions
        .prune(&["--older", "30d", "--unfinished"])
        .assert_exit(0);
    assert!(
        !remaining_files(&ran)
            .iter()
            .any(|name| name.starts_with("c-"))
    );
    assert!(
        ran.stdout.contains("removed 2 sessions, "),
        "{}",
        ran.stdout
    );
}

/// What a link leads to isn't a session of toolq.
#[test]
fn symbolic_links_are_not_followed() {
    let sessions = SessionsDir::new();
    sessions.add_session("a.jsonl", 40, true);
    let kept = sessions.toolq.path().join("kept");
    fs::create_dir(&kept).unwrap();
    fs::write(kept.join("file"), "mine").unwrap();
    std::os::unix::fs::symlink(&kept, sessions.path("a.jsonl.d")).unwrap();
    std::os::unix::fs::symlink(sessions.path("a.jsonl"), sessions.path("b.jsonl")).unwrap();
    let ran = sessions.prune(&["--older", "30d"]).assert_exit(0);
    assert_eq!(ran.file("kept/file").as_deref(), Some("mine"));
    assert_eq!(remaining_files(&ran), ["a.jsonl.d", "b.jsonl"]);
}

/// The blob directory of a log that was deleted is removed if it is old and contains only blobs.
#[test]
fn blob_directories_without_logs_are_removed() {
    let sessions = SessionsDir::new();
    let add_blob = |dir: &str, file: &str, days: u64| {
        let path = sessions.path(dir).join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "x".repeat(3_000)).unwrap();
        for path in [&path, &sessions.path(dir)] {
            let written = SystemTime::now() - Duration::from_secs(days * SECONDS_PER_DAY);
            File::open(path).unwrap().set_modified(written).unwrap();
        }
    };
    let name = |at: u32| format!("20250101T00000{at}Z-0123abcd.jsonl");
    let digest = "0f".repeat(32);
    let files = [
        (name(0), digest.clone(), 40),
        (name(0), format!("{digest}.txt"), 40),
        (name(0), ".aB3xY9.part".to_owned(), 40),
        (name(1), digest.clone(), 20),
        (name(2), "notes.txt".to_owned(), 40),
        (name(3), format!("{digest}/{digest}"), 40),
        ("mine.jsonl".to_owned(), digest.clone(), 40),
    ];
    for (log, file, days) in &files {
        add_blob(&format!("{log}.d"), file, *days);
    }
    sessions.add_session(&name(4), 20, true);
    add_blob(&format!("{}.d", name(4)), &digest, 40);
    std::os::unix::fs::symlink(
        sessions.path("mine.jsonl.d"),
        sessions.path(&(name(5) + ".d")),
    )
    .unwrap();
    let before = remaining_sessions(&sessions);
    let mut dry_run = sessions
        .toolq
        .command(&["log", "prune", "--older", "30d", "-n"]);
    let dry_run = dry_run.output().unwrap();
    let dry_run_output = String::from_utf8(dry_run.stdout).unwrap();
    assert!(
        dry_run_output.contains("would remove 1 directory without a log, 8.7 KiB"),
        "{dry_run_output}"
    );
    assert_eq!(remaining_sessions(&sessions), before);
    let ran = sessions.prune(&["--older", "30d"]).assert_exit(0);
    let removed: Vec<String> = before
        .into_iter()
        .filter(|name| !remaining_files(&ran).contains(name))
        .collect();
    assert_eq!(removed, [name(0) + ".d"]);
    let removed_line = format!("/{}.d (40 days old, 8.7 KiB)", name(0));
    assert!(ran.stdout.contains(&removed_line), "{}", ran.stdout);
    for at in [2, 3] {
        let warning = format!(
            "{}.d has no log, but contains files that toolq did not create",
            name(at)
        );
        assert!(ran.stderr.contains(&warning), "{}", ran.stderr);
    }
}

#[test]
fn ages_are_limited_to_a_century() {
    let sessions = SessionsDir::new();
    sessions.add_session("a.jsonl", 800, true);
    sessions.add_session("b.jsonl", 700, true);
    let ran = sessions.prune(&["--older", "730d"]).assert_exit(0);
    assert_eq!(remaining_files(&ran), ["b.jsonl"]);
    SessionsDir::new()
        .prune(&["--older", "36500d"])
        .assert_exit(0);
    let ran = SessionsDir::new()
        .prune(&["--older", "40000d"])
        .assert_exit(2);
    assert!(
        ran.stderr.contains("longer than a century"),
        "{}",
        ran.stderr
    );
}

#[test]
fn prune_needs_an_age() {
    SessionsDir::new().prune(&[]).assert_exit(2);
    let ran = SessionsDir::new().prune(&["--older", "30"]).assert_exit(2);
    assert!(
        ran.stderr.contains("`30` isn't a duration"),
        "{}",
        ran.stderr
    );
    let ran = SessionsDir::new().prune(&["--older", "30d"]).assert_exit(0);
    assert_eq!(ran.stdout, "nothing to remove\n");
}
