//! Another process deletes, replaces, truncates or writes the log while toolq runs.

use serde_json::json;

use crate::log_durability::{count_runs, toolq};
use crate::support::model_response;

/// A call with side effects starts only if its record is in the file that the path names.
#[test]
fn a_replaced_log_stops_calls_with_effects() {
    for (script, message) in [
        ("rm log", "deleted or replaced"),
        ("mv log elsewhere", "deleted or replaced"),
        ("cp log copy; mv copy log", "deleted or replaced"),
        (": > log", "another process changed it"),
        ("echo hello >> log", "another process changed it"),
    ] {
        let calls = [
            ("pay", json!({})),
            ("sh", json!({"script": script})),
            ("pay", json!({})),
            ("look", json!({})),
        ];
        let toolq = toolq().stdin(model_response(&calls));
        let ended = toolq.run(&["run", "--log", "log"]).assert_exit(4);
        assert!(ended.stderr.contains(message), "{}", ended.stderr);
        let warning = "running its input again may repeat it";
        assert!(ended.stderr.contains(warning), "{}", ended.stderr);
        let texts = ended.result_texts();
        assert_eq!(texts.len(), 4);
        assert_eq!(texts[0], ("paid".to_owned(), false));
        assert!(!texts[1].1, "{script}: {texts:?}");
        assert!(texts[2].1 && texts[3].1, "{script}: {texts:?}");
        assert_eq!(count_runs(ended.dir.path(), "pay"), 1, "{script}");
        assert_eq!(
            ended.stderr.matches("error: the session log").count(),
            1,
            "{}",
            ended.stderr
        );
    }
}

/// Read-only calls don't start without a log either. A log that is deleted after the last start is reported at the end.
#[test]
fn a_deleted_log_is_always_reported() {
    let delete_log = ("sh", json!({"script": "rm log"}));
    for (calls, expected_runs) in [
        (vec![delete_log.clone(), ("look", json!({}))], 0),
        (vec![("look", json!({})), delete_log], 1),
    ] {
        let toolq = toolq().stdin(model_response(&calls));
        let ended = toolq.run(&["run", "-q", "--log", "log"]).assert_exit(4);
        let message = "can't be written: it was deleted or replaced";
        assert_eq!(ended.stderr.matches(message).count(), 1, "{}", ended.stderr);
        assert_eq!(ended.result_texts().len(), 2);
        assert_eq!(count_runs(ended.dir.path(), "look"), expected_runs);
        assert!(ended.file("log").is_none(), "a new log was created");
    }
}
