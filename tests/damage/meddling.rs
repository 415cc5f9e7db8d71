//! Somebody deletes, replaces, cuts or writes the log while toolq runs.

use serde_json::json;

use crate::support::response;
use crate::{ran, toolq};

/// FAULTS 123: what does something starts only if its record will be found.
#[test]
fn a_log_that_is_gone_stops_what_has_effects() {
    for (script, why) in [
        ("rm log", "deleted or replaced"),
        ("mv log elsewhere", "deleted or replaced"),
        ("cp log copy; mv copy log", "deleted or replaced"),
        (": > log", "somebody else changed it"),
        ("echo hello >> log", "somebody else changed it"),
    ] {
        let calls = [
            ("pay", json!({})),
            ("sh", json!({"script": script})),
            ("pay", json!({})),
            ("look", json!({})),
        ];
        let toolq = toolq().stdin(response(&calls));
        let ended = toolq.run(&["run", "-q", "--log", "log"]).exits(4);
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
        let texts = ended.texts();
        assert_eq!(texts.len(), 4);
        assert_eq!(texts[0], ("paid".to_owned(), false));
        assert!(!texts[1].1, "{script}: {texts:?}");
        assert!(texts[2].1 && texts[3].1, "{script}: {texts:?}");
        assert_eq!(ran(ended.dir.path(), "pay"), 1, "{script}");
        assert_eq!(
            ended.stderr.matches("can't be written").count(),
            1,
            "{}",
            ended.stderr
        );
    }
}

/// FAULTS 123: what only looks doesn't start either, and a log that is gone when all is done is told of, too.
#[test]
fn a_log_that_is_gone_is_told_of_whatever_follows() {
    let gone = ("sh", json!({"script": "rm log"}));
    for (calls, started) in [
        (vec![gone.clone(), ("look", json!({}))], 0),
        (vec![("look", json!({})), gone], 1),
    ] {
        let toolq = toolq().stdin(response(&calls));
        let ended = toolq.run(&["run", "-q", "--log", "log"]).exits(4);
        let why = "can't be written: it was deleted or replaced";
        assert_eq!(ended.stderr.matches(why).count(), 1, "{}", ended.stderr);
        assert_eq!(ended.texts().len(), 2);
        assert_eq!(ran(ended.dir.path(), "look"), started);
        assert!(ended.file("log").is_none(), "and no other is begun");
    }
}
