//! toolq killed at every step of a run that needs approvals.

use serde_json::json;

use super::{CliSandbox, decisions, four_calls, model_response, sandbox};
use crate::support::full_or_short;

/// Nothing starts without a yes that is in the log, wherever toolq is killed. A later run asks again about what hasn't
/// started, and finishes.
#[test]
fn nothing_starts_without_a_recorded_yes_wherever_toolq_is_killed() {
    for step in (1..).step_by(full_or_short(1, 11)) {
        let output = sandbox()
            .program("approve", "#!/bin/sh\necho asked >> asked\n")
            .stdin(four_calls())
            .run_shell(&format!(
                r#"cat > c.json
                TOOLQ_FAILPOINT=any:{step}:kill "$TOOLQ" run -q --log log.jsonl --approve-with ./approve c.json > out
                echo $? > code; touch ran asked; cp ran ran_before; cp asked asked_before; cp log.jsonl log_before 2>/dev/null
                "$TOOLQ" run -q --log log.jsonl --approve-with ./approve c.json > out2"#
            ));
        let before = output.file("log_before").unwrap_or_default();
        let paid = output.file("ran_before").unwrap().matches("pay").count();
        let complete = before.rsplit_once('\n').map_or("", |(lines, _)| lines);
        let (mut yes, mut starts) = (0, 0);
        for [kind, word] in decisions(complete) {
            match (kind.as_str(), word.as_str()) {
                ("approval", "yes") => yes += 1,
                ("tool_start", "pay") => {
                    starts += 1;
                    assert!(
                        starts <= yes,
                        "step {step}: a call starts before its yes:\n{before}"
                    );
                }
                _ => {}
            }
        }
        assert!(
            paid <= starts,
            "step {step}: something ran that isn't in the log"
        );
        let count = |file: &str| output.file(file).unwrap().lines().count();
        if starts < yes {
            assert!(
                count("asked") > count("asked_before"),
                "step {step}: a yes of the killed run counts"
            );
        }
        if output.file("code").unwrap().trim() == "0" {
            assert!(step > 10, "the failpoints are gone");
            return;
        }
    }
}

/// A no can't undo what may have happened: the call stays in doubt.
#[test]
fn a_no_leaves_a_call_in_doubt_that_was_killed() {
    let tools = r#"
version: 1
tools:
  pay:
    approve: true
    probe: [sh, -c, "exit 0"]
    input_schema: {type: object}
    command: [sh, -c, "echo pay >> ran; kill -9 $(cat pid); sleep 20"]
"#;
    let output = CliSandbox::new()
        .tools(tools)
        .program("no", "#!/bin/sh\nexit 1\n")
        .stdin(model_response(&[("pay", json!({}))]))
        .run_shell(
            r#"cat > c.json; sh -c 'echo $$ > pid; exec "$TOOLQ" run -q --log log.jsonl --approve all c.json'
            "$TOOLQ" run -q --log log.jsonl --approve-with ./no c.json; test $? = 3"#,
        );
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("In doubt"), "{}", output.stdout);
    assert_eq!(output.file("ran").unwrap(), "pay\n");
}
