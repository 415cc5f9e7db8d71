//! Calls that still arrive when the run begins, in a stream or line by line, are compared with the log one by one.

use crate::stage::{Done, Stage, callees, message, stream};

/// The flags that name the form, and the text of these messages in it.
fn forms(messages: &[String]) -> [(&'static str, String); 2] {
    [
        ("--from=anthropic-sse", stream(messages)),
        ("--follow", messages.join("\n")),
    ]
}

fn resume(stage: &Stage, form: &str) -> Done {
    stage.toolq(&["run", "--resume", "--log", "log.jsonl", form, "input"])
}

/// FAULTS 108, 117: killed in the middle of the second message; what has its result is printed, what may have run is in doubt.
#[test]
fn what_arrives_goes_on_where_it_was_left() {
    let messages = [
        message(&[("look", 1), ("pay", 2)]),
        message(&[("keep", 3), ("fatal", 4), ("pay", 5)]),
        message(&[("pay", 6)]),
    ];
    for (form, text) in forms(&messages) {
        let stage = Stage::new(&callees(), "");
        stage.write("input", &text);
        assert_eq!(resume(&stage, form).code, None, "{form}");
        let done = resume(&stage, form).exits(3);
        let lines: Vec<&str> = done.stdout.lines().collect();
        assert_eq!(lines.len(), 3, "{}", done.stdout);
        assert!(lines[0].contains("looked 1") && lines[0].contains("paid 2"));
        assert!(lines[1].contains("In doubt: fatal") && lines[1].contains("paid 5"));
        assert_eq!(resume(&stage, form).exits(3).stdout, done.stdout, "{form}");
        let mut effects = stage.effects();
        effects.retain(|effect| !effect.starts_with("fatal"));
        assert_eq!(effects, ["look 1", "pay 2", "keep 3", "pay 5", "pay 6"]);
        stage.log_is_in_order();
    }
}

/// FAULTS 116: another call in a logged call's place. It doesn't run, nor does what stands behind it, and the log has no word of
/// either: the right input goes on as if nothing had been asked.
#[test]
fn another_call_is_a_conflict_and_leaves_no_record() {
    let asked = [("look", 1), ("pay", 2), ("fatal", 3), ("look", 4)];
    let other = [
        ("look", 1),
        ("pay", 20),
        ("fatal", 3),
        ("look", 40),
        ("pay", 50),
    ];
    let right = forms(&[message(&asked)]);
    let wrong = forms(&[message(&other), message(&[("pay", 60)])]);
    for ((form, text), (_, other)) in right.into_iter().zip(wrong) {
        let stage = Stage::new(&callees(), "");
        stage.write("input", &text);
        assert_eq!(resume(&stage, form).code, None, "{form}");
        let (before, effects) = (stage.log().len(), stage.effects());
        stage.write("input", &other);
        let refused = resume(&stage, form).exits(2);
        let words = r#"the session log has pay {"n":2}, the input has pay {"n":20}"#;
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
        assert_eq!(stage.effects(), effects, "{form}");
        let types: Vec<String> = stage.log()[before..]
            .iter()
            .map(|record| record["type"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(types, ["session", "session_end"], "{form}");
        stage.write("input", &text);
        let done = resume(&stage, form).exits(3);
        assert!(done.stdout.contains("In doubt: fatal") && done.stdout.contains("looked 4"));
        stage.log_is_in_order();
    }
}
