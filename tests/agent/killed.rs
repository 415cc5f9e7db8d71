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

/// What an undisturbed run prints.
fn undisturbed() -> String {
    let play = opening();
    let printed = play.run(&[], None).exits(0).stdout;
    assert_eq!(play.asked().len(), 5);
    printed
}

#[test]
fn an_agent_killed_anywhere_goes_on() {
    let undisturbed = undisturbed();
    let pairs = each(|at| {
        let play = opening();
        if play
            .run(&[], Some(&format!("any:{at}:kill")))
            .code
            .is_some()
        {
            return false;
        }
        play.check(&undisturbed, &format!("killed at {at}"));
        true
    });
    assert!(pairs > 150, "{pairs}");
}

/// FAULTS 124: the first death leaves a helper at work, or a call in doubt; the second comes at every step of going on.
#[test]
fn one_that_goes_on_may_be_killed_again() {
    let undisturbed = undisturbed();
    for first in [96, 120] {
        let pairs = each(|at| {
            let play = opening();
            play.run(&[], Some(&format!("any:{first}:kill")));
            let again = play.run(&["--resume"], Some(&format!("any:{at}:kill")));
            if again.code.is_some() {
                return false;
            }
            play.check(&undisturbed, &format!("killed at {first}, then at {at}"));
            true
        });
        assert!(pairs > 50, "{pairs}");
    }
}

/// The same where calls start while their model still speaks: what it said is asked for again if it was not on record,
/// and what writes has not started then.
#[test]
fn an_agent_killed_while_its_model_speaks_goes_on() {
    let play = streaming();
    let undisturbed = play.run(&[], None).exits(0).stdout;
    play.check(&undisturbed, "undisturbed");
    let times = each(|at| {
        let play = streaming();
        let failpoint = format!("any:{at}:kill");
        if play.run(&[], Some(&failpoint)).code.is_some() {
            return false;
        }
        play.check(&undisturbed, &format!("killed at {at}"));
        true
    });
    assert!(times > 80, "{times}");
}

/// FAULTS 111, 112, 134: a log that takes no more lets no call start that does something, and a panic loses nothing.
#[test]
fn an_agent_whose_log_fails_goes_on() {
    let undisturbed = undisturbed();
    for how in ["error", "panic"] {
        each(|at| {
            let play = opening();
            play.run(&[], Some(&format!("any:{}:{how}", at * 7)));
            if play.stage.log_path().exists() {
                play.check(&undisturbed, &format!("{how} at {at}"));
            }
            at < 30
        });
    }
}

/// Agents that work beside each other, each at its own pace.
#[test]
fn agents_side_by_side_go_on() {
    let scout = "  scout:\n    input_schema: {type: object, properties: {n: {type: integer}}}\n    concurrency_safe: true\n    agent: {endpoint: \"${BASE}\", model: scout, tools: [look]}\n";
    let opening = || {
        let input = response(&[("scout", n(1)), ("scout", n(2)), ("pay", n(3))]);
        Play::new(&(file() + scout), &input, |body| match whom(body).1 {
            1 => calls(&[("look", n(1)), ("look", n(2))]),
            _ => text(&format!("to {}", body["messages"][0]["content"])),
        })
    };
    let undisturbed = opening().run(&[], None).exits(0).stdout;
    let pairs = each(|at| {
        let play = opening();
        if play
            .run(&[], Some(&format!("any:{at}:kill")))
            .code
            .is_some()
        {
            return false;
        }
        let (asked, answered) = (play.asked().len(), play.answered());
        let doubtful = !play.open().is_empty();
        let mut resumed = play.resume();
        if doubtful {
            play.resolve();
            resumed = play.resume();
        }
        assert_eq!(
            (resumed.code, &resumed.stdout),
            (Some(0), &undisturbed),
            "killed at {at}"
        );
        assert_eq!(play.did("pay 3"), 1, "killed at {at}");
        let again = play.asked()[asked..]
            .iter()
            .any(|digest| answered.contains(digest));
        assert!(!again && play.answered().len() == 4, "killed at {at}");
        play.stage.log_is_in_order();
        true
    });
    assert!(pairs > 80, "{pairs}");
}

/// Does `work` for 1, 2, 3 … on several threads until it has no more. How often that was.
fn each(work: impl Fn(u32) -> bool + Sync) -> u32 {
    let (next, over) = (AtomicU32::new(1), AtomicBool::new(false));
    let done = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    if work(next.fetch_add(1, Ordering::SeqCst)) {
                        done.fetch_add(1, Ordering::SeqCst);
                    } else {
                        over.store(true, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    done.into_inner()
}
