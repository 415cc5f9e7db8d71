//! toolq killed at every step of a session with a host.

use std::fs;
use std::rc::Rc;

use serde_json::{Value, json};

use crate::follow_control::host::Host;
use crate::support::{CliSandbox, full_or_short, parse_json_lines};

/// What a host saw until it had its answer, or toolq was gone.
struct Played {
    asked: usize,
    /// The ids of the calls that it ran.
    served: Vec<String>,
    answer: Option<Value>,
    code: i32,
}

/// Announces `pay`, sends a turn with two calls of it, approves them and runs them.
fn play(mut host: Host) -> Played {
    let (mut asked, mut served, mut answer) = (0, Vec::new(), None);
    let tools =
        json!({"pay": {"backing": "host", "approve": true, "input_schema": {"type": "object"}}});
    host.try_send(&json!({"type": "tools", "tools": tools}).to_string());
    while let Some(line) = host.try_read() {
        let id = line["call"]["tool_use_id"].as_str().unwrap_or_default();
        let reply = match line["type"].as_str().unwrap() {
            "ready" => {
                let calls = ["t0", "t1"]
                    .map(|id| json!({"type": "tool_use", "id": id, "name": "pay", "input": {}}));
                json!({"type": "turn", "id": 1, "message": calls})
            }
            "approval" => {
                asked += 1;
                json!({"type": "approve", "id": 1, "question": line["question"], "decision": "yes"})
            }
            "call" => {
                served.push(id.to_owned());
                json!({"type": "result", "id": 1, "tool_use_id": id, "content": "paid"})
            }
            "answer" => {
                answer = Some(line);
                break;
            }
            other => panic!("{other}: {line}"),
        };
        if !host.try_send(&reply.to_string()) {
            break;
        }
    }
    let code = host.end().code;
    Played {
        asked,
        served,
        answer,
        code,
    }
}

/// No call reaches the host before its approval and its start are in the log, and no call reaches it twice. A resumed
/// session asks again about what hasn't started.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "a release build has no failpoints")]
fn nothing_is_sent_without_a_recorded_yes_wherever_toolq_is_killed() {
    for step in (1..).step_by(full_or_short(1, 7)) {
        let sandbox = Rc::new(CliSandbox::new());
        let failpoint = format!("any:{step}:kill");
        let variables = [("TOOLQ_FAILPOINT", failpoint.as_str())];
        let first = play(Host::start_in(&sandbox, &["-q"], &variables));
        if first.code == 0 {
            assert!(step > 10, "the failpoints are gone");
            return;
        }
        let log = fs::read_to_string(sandbox.path().join("log.jsonl")).unwrap_or_default();
        let complete = log.rsplit_once('\n').map_or("", |(lines, _)| lines);
        let (mut yes, mut starts) = (0, 0);
        for record in parse_json_lines(complete) {
            match record["type"].as_str().unwrap() {
                "approval" => yes += 1,
                "tool_start" => starts += 1,
                _ => {}
            }
            assert!(starts <= yes, "step {step}: a call starts before its yes");
        }
        assert!(
            first.served.len() <= starts,
            "step {step}: a call without a start was sent"
        );
        let second = play(Host::start_in(&sandbox, &["-q"], &[]));
        let answer = second
            .answer
            .unwrap_or_else(|| panic!("step {step}: no answer"));
        assert_eq!(
            answer["message"].as_array().unwrap().len(),
            2,
            "step {step}: {answer}"
        );
        let text = answer.to_string();
        let is_in_doubt = starts > 0 && text.contains("In doubt");
        // After a call in doubt, others need no approval: they don't run.
        assert!(
            starts == yes || second.asked > 0 || is_in_doubt,
            "step {step}: a yes of the killed run counts"
        );
        for id in ["t0", "t1"] {
            let served = first.served.iter().chain(&second.served);
            let count = served.filter(|served| *served == id).count();
            assert!(count <= 1, "step {step}: {id} ran {count} times");
        }
        assert!(
            is_in_doubt || text.matches("\"paid\"").count() == 2,
            "step {step}: {text}"
        );
    }
}
