//! Resuming an input that arrives during the run, as a stream or line by line: each call is compared with the log.

use serde_json::Value;

use crate::support::resume_sandbox::{
    ResumeRunOutput, ResumeSandbox, calls_message, effect_recording_tools, message_stream,
};

/// Returns these messages in each form, with the flag that selects the form.
fn input_forms(messages: &[String]) -> [(&'static str, String); 2] {
    [
        ("--from=anthropic-sse", message_stream(messages)),
        ("--follow", messages.join("\n")),
    ]
}

fn resume_form(sandbox: &ResumeSandbox, form: &str) -> ResumeRunOutput {
    sandbox.run_toolq(&["run", "--resume", "--log", "log.jsonl", form, "input"])
}

/// The run is killed in the second message.
#[test]
fn a_streaming_input_resumes_where_it_stopped() {
    let messages = [
        calls_message(&[("look", 1), ("pay", 2)]),
        calls_message(&[("keep", 3), ("fatal", 4), ("pay", 5)]),
        calls_message(&[("pay", 6)]),
    ];
    for (form, text) in input_forms(&messages) {
        let sandbox = ResumeSandbox::new(&effect_recording_tools(), "");
        sandbox.write_file("input", &text);
        assert_eq!(resume_form(&sandbox, form).code, None, "{form}");
        let done = resume_form(&sandbox, form).assert_exit(3);
        let lines: Vec<&str> = done.stdout.lines().collect();
        assert_eq!(lines.len(), 3, "{}", done.stdout);
        assert!(lines[0].contains("looked 1") && lines[0].contains("paid 2"));
        assert!(lines[1].contains("In doubt: fatal") && lines[1].contains("paid 5"));
        assert_eq!(
            resume_form(&sandbox, form).assert_exit(3).stdout,
            done.stdout,
            "{form}"
        );
        let mut effects = sandbox.effects();
        effects.retain(|effect| !effect.starts_with("fatal"));
        assert_eq!(effects, ["look 1", "pay 2", "keep 3", "pay 5", "pay 6"]);
        sandbox.assert_log_sequence();
    }
}

/// A call that differs from the logged one at its position doesn't run, and neither do later ones. They aren't recorded, so
/// the run can still be resumed with the original input.
#[test]
fn a_different_call_is_a_conflict_and_leaves_no_record() {
    let calls = [("look", 1), ("pay", 2), ("fatal", 3), ("look", 4)];
    let other = [
        ("look", 1),
        ("pay", 20),
        ("fatal", 3),
        ("look", 40),
        ("pay", 50),
    ];
    let original = input_forms(&[calls_message(&calls)]);
    let changed = input_forms(&[calls_message(&other), calls_message(&[("pay", 60)])]);
    for ((form, text), (_, other)) in original.into_iter().zip(changed) {
        let sandbox = ResumeSandbox::new(&effect_recording_tools(), "");
        sandbox.write_file("input", &text);
        assert_eq!(resume_form(&sandbox, form).code, None, "{form}");
        let (before, effects) = (sandbox.log_records().len(), sandbox.effects());
        sandbox.write_file("input", &other);
        let refused = resume_form(&sandbox, form).assert_exit(2);
        let conflict = r#"the session log has pay {"n":2}, the input has pay {"n":20}"#;
        assert!(refused.stderr.contains(conflict), "{}", refused.stderr);
        assert_eq!(sandbox.effects(), effects, "{form}");
        if form == "--follow" {
            // Its sender waits for a line.
            let answer: Value = serde_json::from_str(&refused.stdout).unwrap();
            assert_eq!(answer["type"], "error", "{answer}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains(conflict), "{message}");
        }
        let types: Vec<String> = sandbox.log_records()[before..]
            .iter()
            .map(|record| record["type"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(types, ["session", "session_end"], "{form}");
        sandbox.write_file("input", &text);
        let done = resume_form(&sandbox, form).assert_exit(3);
        assert!(done.stdout.contains("In doubt: fatal") && done.stdout.contains("looked 4"));
        sandbox.assert_log_sequence();
    }
}
