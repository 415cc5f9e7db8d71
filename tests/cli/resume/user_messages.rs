//! Messages about where the log is.

use crate::support::resume_sandbox::{ResumeSandbox, calls_message, effect_recording_tools};

/// One file a turn adds up. Until then, nothing is suggested. From 1 GiB or 10,000 files on, the summary suggests
/// `toolq log prune`.
#[test]
fn a_large_default_directory_is_reported() {
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &calls_message(&[("look", 1)]));
    let run = || {
        sandbox
            .run_toolq(&["run", "input.json"])
            .assert_exit(0)
            .stderr
    };
    assert!(!run().contains("log prune"));
    let old = sandbox
        .path()
        .join("state/toolq/sessions/20200101T000000Z-00000000.jsonl.d");
    std::fs::create_dir(&old).unwrap();
    let blob = std::fs::File::create(old.join("blob")).unwrap();
    blob.set_len((1 << 30) + 1).unwrap();
    let stderr = run();
    assert!(stderr.contains("toolq log prune --older 30d"), "{stderr}");
    let named = sandbox.run().assert_exit(0).stderr;
    assert!(!named.contains("log prune"), "{named}");
}

/// The summary says where the log is, and the variable names it for all turns of a loop.
#[test]
fn the_summary_names_the_log() {
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &calls_message(&[("look", 1)]));
    let default = sandbox
        .run_toolq(&["run", "input.json"])
        .assert_exit(0)
        .stderr;
    let sessions = sandbox.path().join("state/toolq/sessions/");
    let named = format!("note: session log: {}", sessions.display());
    assert!(default.contains(&named), "{default}");
    let loop_log = [("TOOLQ_LOG_FILE", "loop.jsonl")];
    for _ in 0..2 {
        let ran = sandbox.run_with_env(&loop_log, &["run", "input.json"]);
        let stderr = ran.assert_exit(0).stderr;
        assert!(stderr.contains("note: session log: loop.jsonl"), "{stderr}");
    }
    let log = sandbox.read_file("loop.jsonl");
    assert_eq!(log.matches(r#""type":"session""#).count(), 2);
    let flag = sandbox.run_with_env(&loop_log, &["run", "--log", "other.jsonl", "input.json"]);
    flag.assert_exit(0);
    let none = sandbox.run_with_env(&loop_log, &["run", "--no-log", "input.json"]);
    assert!(!none.assert_exit(0).stderr.contains("session log"));
    let empty = sandbox.run_with_env(&[("TOOLQ_LOG_FILE", "")], &["run", "input.json"]);
    assert!(empty.assert_exit(0).stderr.contains(&named));
    assert_eq!(sandbox.read_file("loop.jsonl"), log);
}
