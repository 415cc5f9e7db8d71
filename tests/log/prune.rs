use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::forge::Forge;
use crate::support::{Ran, Toolq};

const DAY: u64 = 86_400;

/// A folder of sessions.
struct Sessions {
    toolq: Toolq,
}

impl Sessions {
    fn new() -> Self {
        Self {
            toolq: Toolq::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.toolq.path().join("state/toolq/sessions").join(name)
    }

    /// A session that is so many days old.
    fn log(&self, name: &str, days: u64, is_finished: bool) -> PathBuf {
        let written = SystemTime::now() - Duration::from_secs(days * DAY);
        let mut log = Forge::new();
        let since = written.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        log.timestamp = u64::try_from(since.as_millis()).unwrap();
        let session = log.session();
        if is_finished {
            log.session_end(session);
        }
        let path = self.path(name);
        log.write(&path);
        age(&path, written);
        path
    }

    fn prune(self, arguments: &[&str]) -> Ran {
        self.toolq.run(&[&["log", "prune"], arguments].concat())
    }
}

fn age(path: &Path, written: SystemTime) {
    let file = File::options().append(true).open(path).unwrap();
    file.set_modified(written).unwrap();
}

fn left(ran: &Ran) -> Vec<String> {
    names(&ran.dir.path().join("state/toolq/sessions"))
}

fn left_below(sessions: &Sessions) -> Vec<String> {
    names(&sessions.path(""))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Sessions of every sort; only the first is old, at its end and in nobody's use.
fn sorts() -> (Sessions, File) {
    let sessions = Sessions::new();
    let old = sessions.log("a-old.jsonl", 40, true);
    fs::create_dir(sessions.path("a-old.jsonl.d")).unwrap();
    let body = format!("a-old.jsonl.d/{}", "0".repeat(64));
    fs::write(sessions.path(&body), "x".repeat(5_000)).unwrap();
    fs::write(sessions.path("a-old.jsonl.torn-7"), "x".repeat(500)).unwrap();
    fs::write(sessions.path("a-older.jsonl.torn-7"), "").unwrap();
    assert!(old.exists());
    sessions.log("b-young.jsonl", 20, true);
    sessions.log("c-unfinished.jsonl", 40, false);
    let used = File::open(sessions.log("d-used.jsonl", 40, true)).unwrap();
    used.lock().unwrap();
    let damaged = sessions.log("e-damaged.jsonl", 40, true);
    let text = fs::read_to_string(&damaged).unwrap();
    fs::write(&damaged, text.replace("/work", "/wurk")).unwrap();
    age(&damaged, SystemTime::now() - Duration::from_secs(40 * DAY));
    fs::write(sessions.path("f-other.txt"), "").unwrap();
    // Its file is old, and its records are not.
    let copied = sessions.log("g-copied.jsonl", 1, true);
    age(&copied, SystemTime::now() - Duration::from_secs(40 * DAY));
    // Its records are old, and its file is not.
    let touched = sessions.log("h-touched.jsonl", 40, true);
    age(&touched, SystemTime::now());
    (sessions, used)
}

const OTHERS: [&str; 8] = [
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
fn only_what_nobody_needs_is_removed() {
    let (sessions, _used) = sorts();
    let ran = sessions.prune(&["--older", "30d"]).exits(0);
    assert_eq!(left(&ran), OTHERS);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(
        lines[0].starts_with("removed /") && lines[0].contains("a-old.jsonl (40 days old, "),
        "{lines:?}"
    );
    assert!(lines[1].starts_with("removed 1 session, "), "{lines:?}");
    assert!(lines[1].ends_with(" KiB") && lines.len() == 2, "{lines:?}");
    assert!(
        ran.stderr.contains("left 1 unfinished session"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("left 1 session in use"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("warning: left as it is: ") && ran.stderr.contains("e-damaged.jsonl"),
        "{}",
        ran.stderr
    );
}

/// A session that came to its end may still be all that is known of a payment.
#[test]
fn what_is_in_doubt_is_kept() {
    for (more, left_over) in [("", 1), ("--unfinished", 0)] {
        let tools = "version: 1\ntools:\n  pay:\n    input_schema: {type: object}\n    command: [sh, -c, 'test -e dead || { touch dead; kill -9 $(cat pid); sleep 60; }; echo paid']\n";
        let input = crate::support::response(&[("pay", serde_json::json!({}))]);
        let toolq = Toolq::new().tools(tools).file("in.json", &input);
        let ran = toolq.shell(&format!(
            r#"sh -c 'echo $$ > pid; exec "$TOOLQ" run -q in.json'; "$TOOLQ" run -q --resume in.json; echo "exit $?"; "$TOOLQ" log prune --older 0s {more}"#
        ));
        assert!(ran.stdout.contains("exit 3"), "{}", ran.stdout);
        let logs = left(&ran)
            .into_iter()
            .filter(|name| name.strip_suffix(".jsonl").is_some());
        assert_eq!(logs.count(), left_over, "{}", ran.stderr);
        let said = ran.stderr.contains("left 1 session with a call in doubt");
        assert_eq!(said, left_over == 1, "{}", ran.stderr);
    }
}

/// What was settled behind its end has an end; what somebody else put beside a log is not toolq's to remove.
#[test]
fn a_settled_session_is_removed_and_what_is_foreign_is_not() {
    let tools = "version: 1\ntools:\n  pay:\n    input_schema: {type: object}\n    command: [sh, -c, 'kill -9 $(cat pid); sleep 60']\n";
    let input = crate::support::response(&[("pay", serde_json::json!({}))]);
    for (foreign, kept) in [("", 0), ("mkdir $log.d; echo x > $log.d/notes; ", 1)] {
        let toolq = Toolq::new().tools(tools).file("in.json", &input);
        let ran = toolq.shell(&format!(
            r#"sh -c 'echo $$ > pid; exec "$TOOLQ" run -q in.json'; "$TOOLQ" run -q --resume in.json; "$TOOLQ" log resolve toolu_0 --not-done; log=$(echo state/toolq/sessions/*.jsonl); {foreign}"$TOOLQ" log prune --older 0s"#
        ));
        let logs = left(&ran);
        let logs = logs
            .iter()
            .filter(|name| name.strip_suffix(".jsonl").is_some());
        assert_eq!(logs.count(), kept, "{}", ran.stderr);
        let notes = left(&ran)
            .iter()
            .any(|name| name.strip_suffix(".d").is_some());
        assert_eq!(notes, kept == 1, "{}", ran.stderr);
    }
}

#[test]
fn a_dry_run_removes_nothing() {
    let (sessions, _used) = sorts();
    let ran = sessions.prune(&["--older", "30d", "--dry-run"]).exits(0);
    assert_eq!(left(&ran).len(), OTHERS.len() + 3);
    assert!(ran.stdout.starts_with("would remove /"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("\nwould remove 1 session, "),
        "{}",
        ran.stdout
    );
}

#[test]
fn unfinished_sessions_are_removed_if_asked_for() {
    let (sessions, _used) = sorts();
    let ran = sessions.prune(&["--older", "30d", "--unfinished"]).exits(0);
    assert!(!left(&ran).iter().any(|name| name.starts_with("c-")));
    assert!(
        ran.stdout.contains("removed 2 sessions, "),
        "{}",
        ran.stdout
    );
}

/// What a link leads to is nobody's session.
#[test]
fn links_lead_nowhere() {
    let sessions = Sessions::new();
    sessions.log("a.jsonl", 40, true);
    let kept = sessions.toolq.path().join("kept");
    fs::create_dir(&kept).unwrap();
    fs::write(kept.join("file"), "mine").unwrap();
    std::os::unix::fs::symlink(&kept, sessions.path("a.jsonl.d")).unwrap();
    std::os::unix::fs::symlink(sessions.path("a.jsonl"), sessions.path("b.jsonl")).unwrap();
    let ran = sessions.prune(&["--older", "30d"]).exits(0);
    assert_eq!(ran.file("kept/file").as_deref(), Some("mine"));
    assert_eq!(left(&ran), ["a.jsonl.d", "b.jsonl"]);
}

/// What is left of a session whose log somebody deleted: removed, if it is old and nothing else is in it.
#[test]
fn folders_without_their_logs_are_removed() {
    let sessions = Sessions::new();
    let body = |folder: &str, file: &str, days: u64| {
        let path = sessions.path(folder).join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "x".repeat(3_000)).unwrap();
        for path in [&path, &sessions.path(folder)] {
            let written = SystemTime::now() - Duration::from_secs(days * DAY);
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
        body(&format!("{log}.d"), file, *days);
    }
    sessions.log(&name(4), 20, true);
    body(&format!("{}.d", name(4)), &digest, 40);
    std::os::unix::fs::symlink(
        sessions.path("mine.jsonl.d"),
        sessions.path(&(name(5) + ".d")),
    )
    .unwrap();
    let before = left_below(&sessions);
    let would = sessions
        .toolq
        .command(&["log", "prune", "--older", "30d", "-n"]);
    let would = { would }.output().unwrap();
    let said = String::from_utf8(would.stdout).unwrap();
    assert!(
        said.contains("would remove 1 folder without a log, 8.7 KiB"),
        "{said}"
    );
    assert_eq!(left_below(&sessions), before);
    let ran = sessions.prune(&["--older", "30d"]).exits(0);
    let gone: Vec<String> = before
        .into_iter()
        .filter(|name| !left(&ran).contains(name))
        .collect();
    assert_eq!(gone, [name(0) + ".d"]);
    let words = format!("/{}.d (40 days old, 8.7 KiB)", name(0));
    assert!(ran.stdout.contains(&words), "{}", ran.stdout);
    for at in [2, 3] {
        let words = format!(
            "{}.d is gone, and it holds files that toolq did not make",
            name(at)
        );
        assert!(ran.stderr.contains(&words), "{}", ran.stderr);
    }
}

#[test]
fn an_age_is_up_to_a_century() {
    let sessions = Sessions::new();
    sessions.log("a.jsonl", 800, true);
    sessions.log("b.jsonl", 700, true);
    let ran = sessions.prune(&["--older", "730d"]).exits(0);
    assert_eq!(left(&ran), ["b.jsonl"]);
    Sessions::new().prune(&["--older", "36500d"]).exits(0);
    let refused = Sessions::new().prune(&["--older", "40000d"]).exits(2);
    assert!(
        refused.stderr.contains("longer than a century"),
        "{}",
        refused.stderr
    );
}

#[test]
fn nothing_is_removed_unasked() {
    Sessions::new().prune(&[]).exits(2);
    let ran = Sessions::new().prune(&["--older", "30"]).exits(2);
    assert!(ran.stderr.contains("`30` is no duration"), "{}", ran.stderr);
    let ran = Sessions::new().prune(&["--older", "30d"]).exits(0);
    assert_eq!(ran.stdout, "nothing to remove\n");
}
