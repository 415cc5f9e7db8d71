//! Messages about a log that is resumed or can't be resumed.

use crate::support::resume_sandbox::{ResumeSandbox, calls_message, effect_recording_tools};

/// If the name of the log is mistyped, all calls run again, so the user must notice.
#[test]
fn resuming_a_missing_log_is_reported() {
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &calls_message(&[("look", 1)]));
    let note = "note: log.jsonl has no session to resume; starting a new one\n";
    let first = sandbox.resume().assert_exit(0).stderr;
    assert!(first.contains(note), "{first}");
    let second = sandbox.resume().assert_exit(0).stderr;
    assert!(!second.contains("starting a new one"), "{second}");
}

/// With another log, all calls would run again, so no hint for `--resume` suggests one.
#[test]
fn hints_for_a_resume_never_name_another_log() {
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &calls_message(&[("look", 1)]));
    sandbox.run().assert_exit(0);
    let hint = |arguments: &[&str]| {
        let run = ["run", "input.json", "--log", "log.jsonl"];
        let refused = sandbox
            .run_toolq(&[&run, arguments].concat())
            .assert_exit(4);
        refused.stderr.lines().last().unwrap().to_owned()
    };
    let log = std::fs::File::open(sandbox.log_path()).unwrap();
    log.lock().unwrap();
    assert_eq!(
        hint(&["--resume"]),
        " hint: wait until the run that is writing it ends"
    );
    assert!(hint(&[]).ends_with("(`--log FILE`) has no record of its calls"));
    drop(log);
    sandbox.write_file("log.jsonl.d", "");
    assert!(!hint(&["--resume"]).contains("--log") && !hint(&[]).contains("--log"));
    std::fs::remove_file(sandbox.path().join("log.jsonl.d")).unwrap();
    let damaged = sandbox.read_file("log.jsonl").replacen("toolq", "tooIq", 1);
    sandbox.write_file("log.jsonl", &damaged);
    assert_eq!(hint(&["--resume"]), hint(&[]));
    assert!(!hint(&[]).contains("--log FILE"));
    sandbox.write_file("log.jsonl", "{}\n");
    let expected = " hint: name a session log that toolq wrote";
    assert_eq!(hint(&["--resume"]), expected);
    assert_eq!(sandbox.effects().len(), 1);
}

/// Each call counts, regardless of the run that its result is from.
#[test]
fn log_show_counts_the_calls_of_a_resumed_run() {
    let calls = [("look", 1), ("missing", 2), ("fatal", 3), ("pay", 4)];
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &calls_message(&calls));
    assert_eq!(sandbox.run().code, None);
    sandbox.resume().assert_exit(3);
    let shown = sandbox
        .run_toolq(&["log", "show", "log.jsonl"])
        .assert_exit(0)
        .stdout;
    assert!(shown.contains(": 4 calls (1 from the log): "), "{shown}");
    sandbox.resume().assert_exit(3);
    let shown = sandbox
        .run_toolq(&["log", "show", "log.jsonl"])
        .assert_exit(0)
        .stdout;
    let end = ": 4 calls (3 from the log)\n\nin doubt: fatal toolu_2 ";
    assert!(shown.contains(end), "{shown}");
}

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

/// In place of the missing end of a killed run, the output says that it was killed, and what to do.
#[test]
fn log_show_says_that_a_run_was_killed() {
    let calls = calls_message(&[("look", 1), ("fatal", 2)]);
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &calls);
    assert_eq!(sandbox.run().code, None);
    let show = || {
        let shown = sandbox.run_toolq(&["log", "show", "log.jsonl"]);
        shown.assert_exit(0).stdout
    };
    let killed = show();
    let last_lines: Vec<&str> = killed.lines().rev().take(2).collect();
    // The command has a line of its own, to be copied.
    assert!(
        last_lines[0].starts_with("  toolq run --resume "),
        "{killed}"
    );
    let label = "killed: no end in the log. This finishes it:";
    assert_eq!(last_lines[1], label, "{killed}");
    sandbox.resume().assert_exit(3);
    let resumed = show();
    assert!(!resumed.contains("no end"), "{resumed}");
}
