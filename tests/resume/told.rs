//! What people are told of a log that is resumed, or can't be.

use crate::stage::{Stage, callees, message};

/// Who mistypes the name of a log hears that all of it begins anew.
#[test]
fn a_log_that_is_not_there_is_told() {
    let stage = Stage::new(&callees(), &message(&[("look", 1)]));
    let note = "note: log.jsonl has no session to resume, so this is the first\n";
    let first = stage.resume().exits(0).stderr;
    assert!(first.contains(note), "{first}");
    let second = stage.resume().exits(0).stderr;
    assert!(!second.contains("so this is the first"), "{second}");
}

/// FAULTS 117: in a log of another name all that this one has done would run again, so that nobody is advised to take one.
#[test]
fn no_other_log_is_advised_for_a_resume() {
    let stage = Stage::new(&callees(), &message(&[("look", 1)]));
    stage.run().exits(0);
    let hint = |arguments: &[&str]| {
        let run = ["run", "input.json", "--log", "log.jsonl"];
        let refused = stage.toolq(&[&run, arguments].concat()).exits(4);
        refused.stderr.lines().last().unwrap().to_owned()
    };
    let log = std::fs::File::open(stage.log_path()).unwrap();
    log.lock().unwrap();
    assert_eq!(
        hint(&["--resume"]),
        " hint: wait until the run that writes it ends"
    );
    assert!(hint(&[]).ends_with("(`--log FILE`) knows nothing of it"));
    drop(log);
    stage.write("log.jsonl.d", "");
    assert!(!hint(&["--resume"]).contains("--log") && !hint(&[]).contains("--log"));
    std::fs::remove_file(stage.path().join("log.jsonl.d")).unwrap();
    let damaged = stage.read("log.jsonl").replacen("toolq", "tooIq", 1);
    stage.write("log.jsonl", &damaged);
    assert_eq!(hint(&["--resume"]), hint(&[]));
    assert!(!hint(&[]).contains("--log FILE"));
    stage.write("log.jsonl", "{}\n");
    let other = " hint: name a file that a run of toolq wrote";
    assert_eq!(hint(&["--resume"]), other);
    assert_eq!(stage.effects().len(), 1);
}

/// Each call is counted, whichever run it was answered by.
#[test]
fn a_resumed_run_is_shown_with_its_counts() {
    let calls = [("look", 1), ("nobody", 2), ("fatal", 3), ("pay", 4)];
    let stage = Stage::new(&callees(), &message(&calls));
    assert_eq!(stage.run().code, None);
    stage.resume().exits(3);
    let shown = stage.toolq(&["log", "show", "log.jsonl"]).exits(0).stdout;
    assert!(
        shown.contains(": 4 calls (1 from the log), 1 in doubt\n"),
        "{shown}"
    );
    stage.resume().exits(3);
    let shown = stage.toolq(&["log", "show", "log.jsonl"]).exits(0).stdout;
    assert!(shown.ends_with(": 4 calls (3 from the log)\n"), "{shown}");
}
