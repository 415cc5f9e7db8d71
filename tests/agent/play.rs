//! A folder in which toolq runs agents several times, an API that answers by what it is asked, and callees that note
//! what they do.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolq_log::digest_of;

use crate::api::{Act, Api, Asked, calls, text};
use crate::stage::{Done, Stage, callees};
use crate::support::response;

/// tools.yaml with the callees of [`Stage`] and the agents `lead`, who may call `helper`, and `helper`. Each names itself
/// as its model.
pub fn file() -> String {
    let agent = |name: &str, tools: &str| {
        format!(
            "  {name}:\n    input_schema: {{type: object, properties: {{n: {{type: integer}}}}}}\n    effect: write\n    agent: {{endpoint: \"${{BASE}}\", model: {name}, tools: [{tools}], max_turns: 4}}\n"
        )
    };
    callees().replace("version: 1", "version: 1\nbuiltins: [attempt_completion]")
        + &agent("lead", "look, keep, pay, fatal, helper, attempt_completion")
        + &agent("helper", "look, keep, pay, fatal")
}

/// The input of all callees.
pub fn n(n: u32) -> Value {
    json!({"n": n})
}

/// Who is asked, and how many messages there are.
pub fn whom(body: &Value) -> (&str, usize) {
    let said = body["messages"].as_array().unwrap().len();
    (body["model"].as_str().unwrap(), said)
}

/// `lead` looks, does what is fatal to toolq once, and pays; then it looks again.
pub fn fatal(body: &Value) -> Act {
    match whom(body).1 {
        1 => calls(&[("look", n(1)), ("fatal", n(2)), ("pay", n(3))]),
        3 => calls(&[("look", n(4))]),
        _ => text(&format!("so: {}", body["messages"][2]["content"])),
    }
}

/// One call of an agent.
pub fn one(agent: &str) -> String {
    response(&[(agent, n(0))])
}

/// A run of `lead` in which that was fatal.
pub fn killed(file: &str) -> Play {
    let play = Play::new(file, &one("lead"), fatal);
    assert_eq!(play.run(&[], None).code, None);
    assert_eq!(play.stage.effects().len(), 2);
    play
}

pub struct Play {
    pub api: Api,
    pub stage: Stage,
}

impl Play {
    /// The same is answered to the same.
    pub fn new(
        file: &str,
        input: &str,
        script: impl Fn(&Value) -> Act + Send + Sync + 'static,
    ) -> Self {
        Self {
            api: Api::by(move |_, body| script(body)),
            stage: Stage::new(file, input),
        }
    }

    /// Runs the input, with these flags; killed or failing where the failpoint says so.
    pub fn run(&self, more: &[&str], failpoint: Option<&str>) -> Done {
        let mut variables = vec![("BASE", self.api.url.as_str())];
        variables.extend(failpoint.map(|failpoint| ("TOOLQ_FAILPOINT", failpoint)));
        let arguments = ["run", "-q", "--log", "log.jsonl", "input.json"];
        self.stage.with(&variables, &[&arguments, more].concat())
    }

    pub fn resume(&self) -> Done {
        self.run(&["--resume"], None)
    }

    /// The digests of the requests so far.
    pub fn asked(&self) -> Vec<String> {
        // Of two texts it is that of both, one behind the other.
        let digest = |asked: &Asked| digest_of([&*asked.body.to_string(), ""].into_iter());
        self.api.heard().iter().map(digest).collect()
    }

    /// The digests of the requests whose answers are in the log.
    pub fn answered(&self) -> BTreeSet<String> {
        let log = self.stage.log();
        let digests = log
            .iter()
            .filter_map(|record| record["metadata"]["request_sha256"].as_str());
        digests.map(str::to_owned).collect()
    }

    /// How often a callee did this.
    pub fn did(&self, what: &str) -> usize {
        let effects = self.stage.effects();
        effects.iter().filter(|line| *line == what).count()
    }

    /// The last record with what this agent used.
    pub fn used(&self, agent: &str) -> Value {
        let log = self.stage.log();
        let of_agent = |record: &&Value| {
            record["metadata"]["agent_name"] == agent && !record["metadata"]["turns_used"].is_null()
        };
        log.iter().rfind(of_agent).unwrap()["metadata"].clone()
    }
}
