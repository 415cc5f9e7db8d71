//! A directory in which toolq runs agents several times, an API whose responses depend only on the conversation, and tools
//! that record their effects.

use serde_json::{Value, json};

use crate::support::model_response;
use crate::support::resume_sandbox::{ResumeRunOutput, ResumeSandbox, effect_recording_tools};
use crate::support::scripted_api::{ApiBehavior, ScriptedApi, calls_response, text_response};

/// Returns a tools.yaml with the effect-recording tools of [`ResumeSandbox`] and two agents: `lead`, which may call
/// `helper`, and `helper`. Each agent's model is named like the agent.
pub fn agent_tools_file() -> String {
    let agent = |name: &str, tools: &str| {
        format!(
            "  {name}:\n    input_schema: {{type: object, properties: {{n: {{type: integer}}}}}}\n    effect: write\n    on_doubt: continue\n    agent: {{endpoint: \"${{BASE}}\", model: {name}, tools: [{tools}], max_turns: 4}}\n"
        )
    };
    effect_recording_tools().replace("version: 1", "version: 1\nbuiltins: [attempt_completion]")
        + &agent("lead", "look, keep, pay, fatal, helper, attempt_completion")
        + &agent("helper", "look, keep, pay, fatal")
}

/// The input of every tool.
pub fn numbered_input(n: u32) -> Value {
    json!({"n": n})
}

/// Returns which agent sent a request, and the number of its messages.
pub fn agent_and_message_count(body: &Value) -> (&str, usize) {
    let message_count = body["messages"].as_array().unwrap().len();
    (body["model"].as_str().unwrap(), message_count)
}

/// `lead` calls `look`, `fatal` (which kills toolq the first time) and `pay`, then `look` again, then answers.
pub fn fatal_call_script(body: &Value) -> ApiBehavior {
    match agent_and_message_count(body).1 {
        1 => calls_response(&[
            ("look", numbered_input(1)),
            ("fatal", numbered_input(2)),
            ("pay", numbered_input(3)),
        ]),
        3 => calls_response(&[("look", numbered_input(4))]),
        _ => text_response(&format!("so: {}", body["messages"][2]["content"])),
    }
}

/// Returns an input with one call of `agent`.
pub fn agent_call_input(agent: &str) -> String {
    model_response(&[(agent, numbered_input(0))])
}

/// Runs `lead` until its call of `fatal` has killed toolq.
pub fn killed_in_fatal_call(file: &str) -> AgentSandbox {
    let sandbox = AgentSandbox::new(file, &agent_call_input("lead"), fatal_call_script);
    assert_eq!(sandbox.run(&[], None).code, None);
    assert_eq!(sandbox.cli.effects().len(), 2);
    sandbox
}

pub struct AgentSandbox {
    pub api: ScriptedApi,
    pub cli: ResumeSandbox,
}

impl AgentSandbox {
    /// `script` must give the same response to the same conversation.
    pub fn new(
        file: &str,
        input: &str,
        script: impl Fn(&Value) -> ApiBehavior + Send + Sync + 'static,
    ) -> Self {
        Self {
            api: ScriptedApi::with_script(move |_, body| script(body)),
            cli: ResumeSandbox::new(file, input),
        }
    }

    /// Runs the input with these flags. The failpoint may kill toolq or make it fail.
    pub fn run(&self, flags: &[&str], failpoint: Option<&str>) -> ResumeRunOutput {
        let mut variables = vec![("BASE", self.api.url.as_str())];
        variables.extend(failpoint.map(|failpoint| ("TOOLQ_FAILPOINT", failpoint)));
        let arguments = ["run", "-q", "--log", "log.jsonl", "input.json"];
        self.cli
            .run_with_env(&variables, &[&arguments, flags].concat())
    }

    /// Returns how often this line was recorded as an effect, for example `pay 1`.
    pub fn effect_count(&self, effect: &str) -> usize {
        let effects = self.cli.effects();
        effects.iter().filter(|line| *line == effect).count()
    }
}
