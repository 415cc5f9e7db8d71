//! An input that arrives during the run, as a stream or line by line, is run again.

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
    sandbox.run_toolq(&["run", "--log", "log.jsonl", form, "input"])
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
        // A read of a stream starts before it is known what follows it.
        effects.retain(|effect| !effect.starts_with("fatal") && !effect.starts_with("look"));
        assert_eq!(effects, ["pay 2", "keep 3", "pay 5", "pay 6"]);
        sandbox.assert_log_sequence();
    }
}
