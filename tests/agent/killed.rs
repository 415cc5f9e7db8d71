//! FAULTS 101, 108, 117, 118 within agents: toolq is killed wherever it can be, and resumed. Counted is what the callees
//! did, and what the API was asked.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::api::{Act, Api, calls, message, ok, text, uses};
use crate::stage::{Done, Stage, callees};
use crate::support::response;

/// Kills at one time.
const WORKERS: usize = 4;

/// `lead` has an agent for a helper, and both have all callees.
pub fn file() -> String {
    let agent = |name: &str, tools: &str| {
        format!(
            "  {name}:\n    input_schema: {{type: object, properties: {{n: {{type: integer}}}}}}\n    effect: write\n    agent: {{endpoint: \"${{BASE}}\", model: {name}, tools: [{tools}], max_turns: 4}}\n"
        )
    };
    callees()
        .replace("version: 1", "version: 1\nbuiltins: [attempt_completion]")
        + &agent("lead", "look, keep, pay, fatal, helper, attempt_completion")
        + &agent("helper", "look, keep, pay, fatal")
}

fn n(n: u32) -> Value {
    json!({"n": n})
}

/// The answer to a conversation: the same to the same.
fn script(body: &Value) -> Act {
    let said = body["messages"].as_array().unwrap().len();
    match (body["model"].as_str().unwrap(), said) {
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

struct Scene {
    api: Api,
    stage: Stage,
}

impl Scene {
    fn new() -> Self {
        let input = response(&[("lead", n(0)), ("pay", n(9))]);
        Self {
            api: Api::by(|_, body| script(body)),
            stage: Stage::new(&file(), &input),
        }
    }

    fn run(&self, resume: &[&str], failpoint: Option<&str>) -> Done {
        let mut variables = vec![("BASE", self.api.url.as_str())];
        variables.extend(failpoint.map(|failpoint| ("TOOLQ_FAILPOINT", failpoint)));
        let arguments = ["run", "-q", "--log", "log.jsonl", "input.json"];
        self.stage.with(&variables, &[&arguments, resume].concat())
    }

    /// The digests of the requests so far.
    fn asked(&self) -> Vec<String> {
        let heard = self.api.heard();
        let digest = |asked: &crate::api::Asked| {
            let digest = Sha256::digest(asked.body.to_string());
            digest.iter().map(|byte| format!("{byte:02x}")).collect()
        };
        heard.iter().map(digest).collect()
    }

    /// The digests of the requests whose answers are in the log.
    fn answered(&self) -> BTreeSet<String> {
        let log = self.stage.log();
        let digests = log
            .iter()
            .filter_map(|record| record["metadata"]["request_sha256"].as_str());
        digests.map(str::to_owned).collect()
    }

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

    fn done(&self, what: &str) -> usize {
        let effects = self.stage.effects();
        effects.iter().filter(|line| *line == what).count()
    }

    /// Somebody looks what the callees did, and says so.
    fn resolve(&self) {
        for (id, n) in self.open() {
            let result = format!("paid {n}");
            let mut arguments = vec!["log", "resolve", &id, "log.jsonl"];
            if self.done(&format!("pay {n}")) == 1 {
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
        let mut resumed = self.run(&["--resume"], None);
        let said = |done: &Done| format!("{what}\n{}\n{}", done.stdout, done.stderr);
        if doubtful {
            assert_eq!(resumed.code, Some(3), "{}", said(&resumed));
            assert!(resumed.stdout.contains("In doubt"), "{}", said(&resumed));
            let again = self.run(&["--resume"], None);
            assert_eq!((&again.stdout, again.code), (&resumed.stdout, Some(3)), "{what}");
            self.resolve();
            resumed = self.run(&["--resume"], None);
        }
        assert_eq!(resumed.code, Some(0), "{}", said(&resumed));
        assert_eq!(resumed.stdout, undisturbed, "{}", said(&resumed));
        for n in [4, 5, 6, 8, 9, 99] {
            let times = usize::from(n != 99);
            assert_eq!(self.done(&format!("pay {n}")), times, "pay {n}: {}", said(&resumed));
        }
        for read in ["look 1", "look 2", "keep 3", "look 7"] {
            assert!(self.done(read) >= 1, "{read}: {}", said(&resumed));
        }
        let again: Vec<String> = self.asked()[asked..]
            .iter()
            .filter(|digest| answered.contains(*digest))
            .cloned()
            .collect();
        assert!(again.is_empty(), "asked twice: {again:?} {}", said(&resumed));
        assert_eq!(self.answered().len(), 5, "{}", said(&resumed));
        self.stage.log_is_in_order();
        let log = self.stage.log();
        let end = log.iter().rfind(|record| record["metadata"]["agent_name"] == "lead");
        assert_eq!(end.unwrap()["metadata"]["turns_used"], 3, "{what}");
        assert_eq!(end.unwrap()["metadata"]["tool_calls_made"], 10, "{what}");
    }
}

#[test]
fn an_agent_killed_anywhere_goes_on() {
    let scene = Scene::new();
    let undisturbed = scene.run(&[], None).exits(0).stdout;
    assert_eq!(scene.asked().len(), 5);
    scene.check(&undisturbed, "undisturbed");
    let (next, pairs) = (AtomicU32::new(1), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::SeqCst);
                    let scene = Scene::new();
                    let done = scene.run(&[], Some(&format!("any:{at}:kill")));
                    if done.code.is_some() {
                        return;
                    }
                    scene.check(&undisturbed, &format!("killed at {at}"));
                    pairs.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    let pairs = pairs.into_inner();
    crate::support::say(format_args!("{pairs} pairs of kill and resume of an agent"));
    assert!(pairs > 100, "{pairs}");
}
