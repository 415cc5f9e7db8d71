//! `builtins` → tools that toolq has itself, behind those of the file. A tool of the file that has such a name wins.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::text::nearest;
use crate::tools_file::keys::ToolsFile;
use crate::tools_file::resolve::diagnostics::Findings;
use crate::tools_file::resolve::limits;
use crate::tools_file::spanned::Setting;
use crate::types::{
    Backing, Builtin, Compare, Effect, Messages, OnFailure, OutputKind, Safety, Status, Tool,
};

/// Their names.
pub(crate) const NAMES: [&str; 2] = [COMPLETION, NEW_TASK];
const COMPLETION: &str = "attempt_completion";
const NEW_TASK: &str = "new_task";

/// The built-in tools that the file names and has not itself. `tools` are its own.
pub(crate) fn wanted(
    file: &ToolsFile,
    tools: &[Arc<Tool>],
    messages: &Messages,
    findings: &mut Findings<'_>,
) -> Vec<Arc<Tool>> {
    let mut found: BTreeMap<&str, Arc<Tool>> = BTreeMap::new();
    for name in file.builtins.items() {
        let own = tools.iter().any(|tool| tool.name == name.value);
        let agents = || agents(tools);
        match name.value.as_str() {
            COMPLETION | NEW_TASK if own => {}
            COMPLETION => {
                found.insert(COMPLETION, Arc::new(completion(messages)));
            }
            NEW_TASK if agents().is_empty() => findings.error(
                name.span,
                "`new_task` hands tasks to agents, and this file has none",
                "",
                "give a tool an `agent`, or leave `new_task` out",
            ),
            NEW_TASK => {
                found.insert(NEW_TASK, Arc::new(new_task(agents(), messages)));
            }
            unknown => findings.error(
                name.span,
                format!("toolq has no tool `{unknown}` of its own"),
                "unknown",
                match nearest(unknown, NAMES) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("there are `{COMPLETION}` and `{NEW_TASK}`"),
                },
            ),
        }
    }
    found.into_values().collect()
}

fn agents(tools: &[Arc<Tool>]) -> Vec<Arc<Tool>> {
    let is_agent = |tool: &&Arc<Tool>| matches!(tool.backing, Some(Backing::Agent(_)));
    tools.iter().filter(is_agent).cloned().collect()
}

fn completion(messages: &Messages) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {"result": {"type": "string", "description": "The answer, complete."}},
        "required": ["result"],
        "additionalProperties": false,
    });
    let description = "Give the final answer, once everything that it takes is done. This ends the \
                       work: what is called behind it is not executed.";
    tool(
        COMPLETION,
        description,
        schema,
        Builtin::AttemptCompletion,
        messages,
    )
}

/// `new_task`, whose tasks go to one of `agents`.
pub(crate) fn new_task(agents: Vec<Arc<Tool>>, messages: &Messages) -> Tool {
    let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    let each = agents
        .iter()
        .map(|agent| format!("- {}: {}", agent.name, agent.description));
    let known = each.collect::<Vec<_>>().join("\n");
    let schema = json!({
        "type": "object",
        "properties": {
            "agent": {"type": "string", "enum": names, "description": format!("Who does it:\n{known}")},
            "task": {"type": "string", "minLength": 1, "description": "The task, with all that the agent has to know."},
        },
        "required": ["agent", "task"],
        "additionalProperties": false,
    });
    let description = "Hand a task to an agent, and get its answer.";
    tool(
        NEW_TASK,
        description,
        schema,
        Builtin::NewTask(agents),
        messages,
    )
}

fn tool(
    name: &str,
    description: &str,
    input_schema: Value,
    builtin: Builtin,
    messages: &Messages,
) -> Tool {
    Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        display_name: None,
        category: None,
        input_schema,
        describe: None,
        safety: Safety::Declared(false),
        effect: Effect::Idempotent,
        timeout: limits::timeout([&Setting::default(), &Setting::default()]),
        estimate: None,
        paths: Vec::new(),
        status: Status::default(),
        backing: Some(Backing::Builtin(builtin)),
        output: OutputKind::Text,
        max_output: limits::MAX_OUTPUT,
        max_saved: limits::MAX_SAVED,
        retry: limits::never(),
        on_failure: OnFailure::Continue,
        pause_after_failures: None,
        coerce: true,
        compare: Compare::Json,
        probe: None,
        ignore: Vec::new(),
        messages: messages.clone(),
    }
}
