//! FAULTS 101, 108, 117, 118 within agents: toolq is killed wherever it can be, and resumed. Counted is what the callees
//! did, and what the API was asked.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::api::{Act, calls, message, ok, streamed, text, uses};
use crate::play::{Play, file, n, whom};
use crate::stage::Done;
use crate::support::response;

/// Kills at one time.
const WORKERS: usize = 4;

/// The answer to a conversation: the same to the same.
fn script(body: &Value) -> Act {
    match whom(body) {
        ("lead", 1) => calls(&[
            ("look", n(1)),
            ("look", n(2)),
            ("keep", n(3)),
            ("pay", n(4)),
        ]),
        ("lead", 3) => calls(&[("helper", n(0)), ("pay", n(5)), ("lok", n(0))]),
        ("helper", 1) => calls(&[("pay", n(6)), ("look", n(7))]),
        ("helper", _) => text("helped"),
        _ => {
            let mut said = uses(&[("pay", n(8))]);
            let done = json!({"result": format!("done: {}", body["messages"][4])});
            said.extend(uses(&[("attempt_completion", done), ("pay", n(99))]));
            said[1]["id"] = json!("a1");
            said[2]["id"] = json!("a2");
            ok(message(json!(said), "tool_use"))
        }
    }
}

fn opening() -> Play {
    Play::new(&file(), &input(), script)
}

/// The same where the models stream.
fn streaming() -> Play {
    let file = file().replace("max_turns: 4", "max_turns: 4, stream: true");
    Play::new(&file, &input(), |body| streamed(script(body)))
}

fn input() -> String {
    response(&[("lead", n(0)), ("pay", n(9))])
}

impl Play {
    /// The ids of the records of calls that pay and have a start and no end, each with what it says.
    fn open(&self) -> Vec<(String, u64)> {
        let mut open = Vec::new();
        let mut asked = Vec::new();
        for record in self.stage.log() {
            let parent = record["parentId"].as_str().unwrap_or_default().to_owned();
            let pays = record["metadata"]["tool_name"] == "pay";
            match record["type"].as_str().unwrap() {
                "tool_call" => asked.push((
                    record["id"].as_str().unwrap().to_owned(),
                    record["content"]["input"]["n"].as_u64().unwrap_or_default(),
                )),
                "tool_start" if pays => {
                    let call = asked.iter().find(|(id, _)| *id == parent);
                    open.push(call.unwrap().clone());
                }
                "tool_result" => open.retain(|(id, _)| *id != parent),
                _ => {}
            }
        }
        open
    }

    /// Somebody looks what the callees did, and says so.
    fn resolve(&self) {
        for (id, n) in self.open() {
            let result = format!("paid {n}");
            let mut arguments = vec!["log", "resolve", &id, "log.jsonl"];
            if self.did(&format!("pay {n}")) == 1 {
                arguments.extend(["--done", "--result", &result]);
            } else {
                arguments.push("--not-done");
            }
            self.stage.toolq(&arguments).exits(0);
        }
    }

    /// Resumes to the end and holds what was done against an undisturbed run.
    fn check(&self, undisturbed: &str, what: &str) {
        let (asked, answered) = (self.asked().len(), self.answered());
        let doubtful = !self.open().is_empty();
        let mut resumed = self.resume();
        let said = |done: &Done| format!("{what}\n{}\n{}", done.stdout, done.stderr);
        if doubtful {
            assert_eq!(resumed.code, Some(3), "{}", said(&resumed));
            assert!(resumed.stdout.contains("In doubt"), "{}", said(&resumed));
            let again = self.resume();
            assert_eq!(
                (&again.stdout, again.code),
                (&resumed.stdout, Some(3)),
                "{what}"
            );
            self.resolve();
            resumed = self.resume();
        }
        assert_eq!(resumed.code, Some(0), "{}", said(&resumed));
        assert_eq!(resumed.stdout, undisturbed, "{}", said(&resumed));
        for n in [4, 5, 6, 8, 9, 99] {
            let times = usize::from(n != 99);
            assert_eq!(
                self.did(&format!("pay {n}")),
                times,
                "pay {n}: {}",
                said(&resumed)
            );
        }
        for read in ["look 1", "look 2", "keep 3", "look 7"] {
            assert!(self.did(read) >= 1, "{read}: {}", said(&resumed));
        }
        let again: Vec<String> = self.asked()[asked..]
            .iter()
            .filter(|digest| answered.contains(*digest))
            .cloned()
            .collect();
        assert!(
            again.is_empty(),
            "asked twice: {again:?} {}",
            said(&resumed)
        );
        assert_eq!(self.answered().len(), 5, "{}", said(&resumed));
        self.stage.log_is_in_order();
        let used = self.used("lead");
        assert_eq!(
            (&used["turns_used"], &used["tool_calls_made"]),
            (&json!(3), &json!(10)),
            "{what}"
        );
    }
}

#[test]
fn an_agent_killed_anywhere_goes_on() {
    let play = opening();
    let undisturbed = play.run(&[], None).exits(0).stdout;
    assert_eq!(play.asked().len(), 5);
    play.check(&undisturbed, "undisturbed");
    let pairs = AtomicU32::new(0);
    each(|at| {
        let play = opening();
        if play
            .run(&[], Some(&format!("any:{at}:kill")))
            .code
            .is_some()
        {
            return false;
        }
        play.check(&undisturbed, &format!("killed at {at}"));
        pairs.fetch_add(1, Ordering::SeqCst);
        true
    });
    // The first death leaves a helper at work, and a call in doubt; the second comes at every step of going on.
    for first in [96, 120] {
        each(|at| {
            let play = opening();
            play.run(&[], Some(&format!("any:{first}:kill")));
            if play
                .run(&["--resume"], Some(&format!("any:{at}:kill")))
                .code
                .is_some()
            {
                return false;
            }
            play.check(&undisturbed, &format!("killed at {first}, then at {at}"));
            pairs.fetch_add(1, Ordering::SeqCst);
            true
        });
    }
    let pairs = pairs.into_inner();
    crate::support::say(format_args!("{pairs} pairs of kill and resume of an agent"));
    assert!(pairs > 250, "{pairs}");
}

/// The same where calls start while their model still speaks: what it said is asked for again if it was not on record,
/// and what writes has not started then.
#[test]
fn an_agent_killed_while_its_model_speaks_goes_on() {
    let play = streaming();
    let undisturbed = play.run(&[], None).exits(0).stdout;
    play.check(&undisturbed, "undisturbed");
    let times = AtomicU32::new(0);
    each(|at| {
        let play = streaming();
        let failpoint = format!("any:{at}:kill");
        if play.run(&[], Some(&failpoint)).code.is_some() {
            return false;
        }
        play.check(&undisturbed, &format!("killed at {at}"));
        times.fetch_add(1, Ordering::SeqCst);
        true
    });
    assert!(times.into_inner() > 80);
}

/// Does `work` for 1, 2, 3 … on several threads until it has no more.
fn each(work: impl Fn(u32) -> bool + Sync) {
    let (next, over) = (AtomicU32::new(1), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    if !work(next.fetch_add(1, Ordering::SeqCst)) {
                        over.store(true, Ordering::SeqCst);
                    }
                }
            });
        }
    });
}
