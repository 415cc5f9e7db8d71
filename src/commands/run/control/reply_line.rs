//! The lines that the host process reads.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::commands::run::control::message::LineId;
use crate::commands::run::control::tools_loading::ToolsProblem;
use toolq_core::types::ToolsChange;
use toolq_engine::HostCall;

/// What the host needs to run a call.
#[derive(Serialize)]
struct HostCallJson<'a> {
    tool_use_id: &'a str,
    tool_name: &'a str,
    effect: &'static str,
    input: &'a RawValue,
    attempt: u32,
    idempotency_key: &'a str,
    timeout_ms: u64,
    /// The agent that makes the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
}

/// Returns the line that answers a turn. `message` is JSON.
pub(super) fn answer_line(id: &LineId, message: &str) -> String {
    line_with("answer", id, "message", message)
}

/// Returns the line that asks for an approval. `call` is JSON.
pub(super) fn approval_line(id: &LineId, question: u64, call: &str) -> String {
    let members = format!("{question},\"call\":{}", call.trim_end());
    line_with("approval", id, "question", &members)
}

/// Returns the line that declares the tools. `tools` is JSON.
pub(super) fn list_line(id: &LineId, tools: &str) -> String {
    line_with("list", id, "tools", tools)
}

/// Returns the line that shows the plan of a message. `plan` is JSON.
pub(super) fn plan_line(id: &LineId, plan: &str) -> String {
    line_with("plan", id, "plan", plan.trim_end())
}

/// Returns the line that asks the host to run a call of the turn `id`.
///
/// # Errors
/// It can't be written.
pub(super) fn call_line(id: &LineId, number: u64, call: &HostCall) -> serde_json::Result<String> {
    let timeout_ms = u64::try_from(call.timeout.as_millis()).unwrap_or(u64::MAX);
    let json = serde_json::to_string(&HostCallJson {
        tool_use_id: &call.call.tool_use_id,
        tool_name: &call.call.tool_name,
        effect: call.effect.name(),
        input: call.input.as_raw(),
        attempt: call.attempt,
        idempotency_key: &call.idempotency_key,
        timeout_ms,
        agent: call.call.parent.as_ref().map(|agent| &*agent.tool_name),
    })?;
    let id = &id.0;
    Ok(format!(
        "{{\"type\":\"call\",\"id\":{id},\"number\":{number},\"call\":{json}}}\n"
    ))
}

/// Returns the line that tells the host that the result of a call is no longer needed.
pub(super) fn cancel_call_line(id: &LineId, number: u64, tool_use_id: &str) -> String {
    let line =
        json!({"type": "cancel_call", "id": id.0, "number": number, "tool_use_id": tool_use_id});
    format!("{line}\n")
}

/// Returns the line that says that tools are in force, and what a reload has changed.
pub(super) fn ready_line(id: Option<&LineId>, change: Option<&ToolsChange>) -> String {
    let mut line = json!({"type": "ready"});
    if let Some(change) = change {
        line["added"] = json!(change.added);
        line["removed"] = json!(change.removed);
        line["changed"] = json!(change.changed);
    }
    finish_line(line, id)
}

/// Returns the line that says what was wrong.
pub(super) fn error_line(id: Option<&LineId>, message: &str) -> String {
    problem_line(id, message, &[])
}

/// Returns the line that says what is wrong with tools.
pub(super) fn problem_line(
    id: Option<&LineId>,
    message: &str,
    problems: &[ToolsProblem],
) -> String {
    let mut error = json!({"type": "invalid_request", "message": message});
    if !problems.is_empty() {
        error["problems"] = json!(problems);
    }
    match id {
        Some(id) => line_with("error", id, "error", &error.to_string()),
        None => format!("{}\n", json!({"type": "error", "error": error})),
    }
}

fn line_with(kind: &str, id: &LineId, key: &str, json: &str) -> String {
    let id = &id.0;
    format!("{{\"type\":\"{kind}\",\"id\":{id},\"{key}\":{json}}}\n")
}

fn finish_line(mut line: Value, id: Option<&LineId>) -> String {
    if let Some(id) = id {
        line["id"] = id.0.clone();
    }
    format!("{line}\n")
}
