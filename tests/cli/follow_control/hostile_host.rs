//! Whatever the host does, each turn has one answer with one result for each of its calls, in order.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::follow_control::host::Host;
use crate::support::full_or_short;

const TURNS: usize = full_or_short(40, 12);
const SEEDS: u64 = full_or_short(4, 1);
const MAX_IN_FLIGHT: usize = 6;

/// A host that does what it shouldn't.
struct HostileHost {
    host: Host,
    random: fastrand::Rng,
    /// The calls of each turn in flight.
    turns: BTreeMap<String, usize>,
    calls: Vec<Value>,
    answered: usize,
}

impl HostileHost {
    fn begin_turn(&mut self, number: usize) {
        let id = format!("turn-{number}");
        let count = self.random.usize(0..6);
        let names = ["read", "write", "impatient", "blocks", "missing"];
        let calls: Vec<(&str, Value)> = (0..count)
            .map(|_| {
                (
                    names[self.random.usize(0..names.len())],
                    json!({"n": number}),
                )
            })
            .collect();
        self.host.turn(&id, &calls);
        self.turns.insert(id, count);
    }

    /// Reads a line, and checks it.
    fn take_line(&mut self) {
        let line = self.host.read();
        match line["type"].as_str().unwrap() {
            "call" => self.calls.push(line),
            "answer" => self.check_answer(&line),
            "cancel_call" => {
                // Sometimes it listens.
                if self.random.bool() {
                    self.calls.retain(|call| call["number"] != line["number"]);
                }
            }
            "error" => {}
            other => panic!("{other}"),
        }
    }

    fn check_answer(&mut self, line: &Value) {
        let id = line["id"].as_str().unwrap();
        let count = self
            .turns
            .remove(id)
            .unwrap_or_else(|| panic!("answered twice: {line}"));
        let results = line["message"].as_array().unwrap();
        let ids: Vec<&str> = results
            .iter()
            .map(|result| result["tool_use_id"].as_str().unwrap())
            .collect();
        let expected: Vec<String> = (0..count).map(|at| format!("t{at}")).collect();
        assert_eq!(ids, expected);
        self.answered += 1;
    }

    fn misbehave(&mut self) {
        let call = match self.calls.len() {
            0 => json!({"id": "turn-0", "number": 1, "call": {"tool_use_id": "t0"}}),
            count => {
                let at = self.random.usize(0..count);
                self.calls[at].clone()
            }
        };
        match self.random.u8(0..12) {
            0 => self.host.send("garbage"),
            1 => self.host.send(r#"{"type":"result"}"#),
            2 => self
                .host
                .send(r#"{"type":"result","id":"turn-1","tool_use_id":"nobody","content":"x"}"#),
            3 => {
                // A number of another call.
                let number = self.random.u64(0..200);
                self.host.send_json(&json!({"type": "result", "id": call["id"], "number": number, "tool_use_id": call["call"]["tool_use_id"], "content": "x"}));
            }
            4 => self.host.answer_call(&call, &json!("x".repeat(1 << 20))),
            5 => self.host.answer_call(&call, &json!({"not": ["content"]})),
            6 => self
                .host
                .answer_call(&call, &json!([{"type": "text", "text": "a block"}])),
            7 => {
                let id = call["id"].clone();
                self.host.send_json(&json!({"type": "cancel", "id": id}));
            }
            // Twice, and the call stays known, so that it comes a third time.
            8 => {
                self.host.answer_call(&call, &json!("one"));
                self.host.answer_call(&call, &json!("two"));
            }
            _ => {
                self.host.answer_call(&call, &json!("fine"));
                self.calls.retain(|known| known["number"] != call["number"]);
            }
        }
    }
}

fn play(seed: u64) {
    let mut host = Host::start("", &["-q"]);
    host.announce(json!({
        "read": {"effect": "read", "timeout": "200ms"},
        "write": {"timeout": "50ms", "on_doubt": "continue"},
        "impatient": {"effect": "read", "timeout": "10ms"},
        "blocks": {"effect": "read", "output": "content", "timeout": "200ms"},
    }));
    let mut hostile = HostileHost {
        host,
        random: fastrand::Rng::with_seed(seed),
        turns: BTreeMap::new(),
        calls: Vec::new(),
        answered: 0,
    };
    for number in 0..TURNS {
        hostile.begin_turn(number);
        hostile.misbehave();
        hostile.misbehave();
        while hostile.turns.len() >= MAX_IN_FLIGHT {
            hostile.misbehave();
            // Each act has at least one line as its consequence, sooner or later: the calls time out.
            hostile.take_line();
        }
    }
    let HostileHost {
        host,
        turns,
        answered,
        ..
    } = hostile;
    let end = host.end();
    let last = end.lines.iter().filter(|line| line["type"] == "answer");
    let last: Vec<&str> = last.map(|line| line["id"].as_str().unwrap()).collect();
    let mut expected: Vec<&String> = turns.keys().collect();
    expected.sort();
    let mut last_sorted = last.clone();
    last_sorted.sort_unstable();
    assert_eq!(last_sorted, expected, "{seed}");
    assert_eq!(answered + last.len(), TURNS, "{seed}");
}

#[test]
fn every_call_has_one_result_whatever_the_host_does() {
    for seed in 0..SEEDS {
        play(seed);
    }
}
