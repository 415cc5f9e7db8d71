//! `builtins`: tools that toolq provides, which come after those of the file. A tool of the same name in the file takes
//! precedence.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::text::suggest_name;
use crate::tools_file::context::Diagnostics;
use crate::tools_file::spanned::Field;
use crate::types::{
    Backing, BuiltinTool, DEFAULT_MAX_OUTPUT, DEFAULT_MAX_SAVED, DEFAULT_PAGE_BYTES, Effect,
    MessageTemplates, RetryPolicy, SafetyPolicy, Tool,
};

/// Names of the built-in tools.
pub(crate) const BUILTIN_NAMES: [&str; 3] = [ATTEMPT_COMPLETION, NEW_TASK, OUTPUT_READER];

const ATTEMPT_COMPLETION: &str = "attempt_completion";

const NEW_TASK: &str = "new_task";

/// The built-in tool that reads outputs that were cut.
pub const OUTPUT_READER: &str = "read_output";

/// The longest regular expression that a call may look for, in characters.
const MAX_PATTERN_CHARS: usize = 1_000;

/// Returns the built-in tools that the file enables with `names`, except those that it overrides. `tools` are the file's own;
/// `max_output` is how much one call may return of an output.
pub(crate) fn resolve_builtins(
    names: &Field<Vec<Field<String>>>,
    tools: &[Arc<Tool>],
    max_output: u64,
    messages: &MessageTemplates,
    diagnostics: &mut Diagnostics,
) -> Vec<Arc<Tool>> {
    let mut found: BTreeMap<&str, Arc<Tool>> = BTreeMap::new();
    for name in names.items() {
        let is_overridden = tools.iter().any(|tool| tool.name == name.value);
        let agents = || list_agents(tools);
        match name.value.as_str() {
            ATTEMPT_COMPLETION | NEW_TASK | OUTPUT_READER if is_overridden => {}
            ATTEMPT_COMPLETION => {
                found.insert(ATTEMPT_COMPLETION, Arc::new(completion_tool(messages)));
            }
            NEW_TASK if agents().is_empty() => diagnostics.error(
                name.span,
                "`new_task` delegates to agents, and this file has none",
                "give a tool an `agent`, or leave `new_task` out",
            ),
            NEW_TASK => {
                found.insert(NEW_TASK, Arc::new(new_task_tool(agents(), messages)));
            }
            OUTPUT_READER => {
                let tool = read_output_tool(max_output, messages);
                found.insert(OUTPUT_READER, Arc::new(tool));
            }
            unknown => diagnostics.error(
                (name.span, "unknown"),
                format!("there is no built-in tool `{unknown}`"),
                match suggest_name(unknown, BUILTIN_NAMES) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        format!("the built-in tools are `{ATTEMPT_COMPLETION}`, `{NEW_TASK}` and `{OUTPUT_READER}`")
                    }
                },
            ),
        }
    }
    found.into_values().collect()
}

fn list_agents(tools: &[Arc<Tool>]) -> Vec<Arc<Tool>> {
    let is_agent = |tool: &&Arc<Tool>| matches!(tool.backing, Some(Backing::Agent(_)));
    tools.iter().filter(is_agent).cloned().collect()
}

fn completion_tool(messages: &MessageTemplates) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "result": {"type": "string", "description": "The complete answer."},
        },
        "required": ["result"],
        "additionalProperties": false,
    });
    let description = "Give the final answer, once all the work for it is done. This ends the \
                       session: calls after it are not executed.";
    builtin_tool(
        ATTEMPT_COMPLETION,
        description,
        schema,
        BuiltinTool::AttemptCompletion,
        messages,
    )
}

/// Returns a `new_task` that delegates to one of `agents`.
pub(crate) fn new_task_tool(agents: Vec<Arc<Tool>>, messages: &MessageTemplates) -> Tool {
    let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    let known = agents
        .iter()
        .map(|agent| format!("- {}: {}", agent.name, agent.description))
        .collect::<Vec<_>>()
        .join("\n");
    let schema = json!({
        "type": "object",
        "properties": {
            "agent": {"type": "string", "enum": names, "description": format!("The agent for the task:\n{known}")},
            "task": {"type": "string", "minLength": 1, "description": "The task, with everything that the agent needs to know."},
        },
        "required": ["agent", "task"],
        "additionalProperties": false,
    });
    builtin_tool(
        NEW_TASK,
        "Delegate a task to an agent and get its answer.",
        schema,
        BuiltinTool::NewTask(agents),
        messages,
    )
}

fn read_output_tool(max_output: u64, messages: &MessageTemplates) -> Tool {
    let id = "The id that the note in the cut output names.";
    let offset = "The byte offset at which to begin. Default: 0.";
    let limit = DEFAULT_PAGE_BYTES.min(max_output);
    let limit = format!("How many bytes of the output to return at most. Default: {limit}.");
    let pattern = "A regular expression (without look-around and backreferences). With it, only what matches is returned, with byte offsets.";
    let schema = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string", "minLength": 1, "description": id},
            "offset": {"type": "integer", "minimum": 0, "description": offset},
            "limit": {"type": "integer", "minimum": 1, "maximum": max_output, "description": limit},
            "pattern": {"type": "string", "minLength": 1, "maxLength": MAX_PATTERN_CHARS, "description": pattern},
        },
        "required": ["id"],
        "additionalProperties": false,
    });
    let description = "Read the output of an earlier call that was cut: a part of it, or what matches a \
                       pattern. The first line of the result says which bytes it has and where to continue.";
    Tool {
        safety: SafetyPolicy::Effect(true),
        effect: Effect::Read,
        max_output,
        ..builtin_tool(
            OUTPUT_READER,
            description,
            schema,
            BuiltinTool::ReadOutput,
            messages,
        )
    }
}

fn builtin_tool(
    name: &str,
    description: &str,
    input_schema: Value,
    builtin: BuiltinTool,
    messages: &MessageTemplates,
) -> Tool {
    Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema,
        safety: SafetyPolicy::Declared(false),
        effect: Effect::Idempotent,
        backing: Some(Backing::Builtin(builtin)),
        retry: RetryPolicy {
            max_retries: 0,
            conditions: Vec::new(),
            ..RetryPolicy::default()
        },
        max_output: DEFAULT_MAX_OUTPUT,
        max_saved: DEFAULT_MAX_SAVED,
        coerce: true,
        messages: messages.clone(),
        ..Tool::default()
    }
}
