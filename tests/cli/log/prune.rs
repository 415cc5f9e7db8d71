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

/// Creates sessions of every kind. Only the first and the third are old, and not in use. The returned file holds a lock.
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

const KEPT_FILES: [&str; 7] = [
    "a-older.jsonl.torn-7",
    "b-young.jsonl",
    "d-used.jsonl",
    "e-damaged.jsonl",
    "f-other.txt",
    "g-copied.jsonl",
    "h-touched.jsonl",
];

#[test]
fn only_old_unused_sessions_are_pruned() {
    let (sessions, _locked) = sessions_of_every_kind();
    let ran = sessions.prune(&["--older", "30d"]).assert_exit(0);
    assert_eq!(remaining_files(&ran), KEPT_FILES);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(
        lines[0].starts_with("removed /") && lines[0].contains("a-old.jsonl (40 days old, "),
        "{lines:?}"
    );
    assert!(lines[2].starts_with("pruned 2 sessions, "), "{lines:?}");
    assert!(lines[2].ends_with(" KiB") && lines.len() == 3, "{lines:?}");
    assert!(
        ran.stderr.contains("kept 1 session in use"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("warning: not pruned: ") && ran.stderr.contains("e-damaged.jsonl"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_dry_run_prunes_nothing() {
    let (sessions, _locked) = sessions_of_every_kind();
    let ran = sessions
        .prune(&["--older", "30d", "--dry-run"])
        .assert_exit(0);
    assert_eq!(remaining_files(&ran).len(), KEPT_FILES.len() + 4);
    assert!(ran.stdout.starts_with("would remove /"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("\nwould prune 2 sessions, "),
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
        dry_run_output.contains("would prune 1 directory without a log, 8.7 KiB"),
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
    assert_eq!(ran.stdout, "nothing to prune\n");
}
