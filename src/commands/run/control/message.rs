//! The lines that the host process writes.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::commands::run::control::tools_loading::ToolsProblem;
use toolq_core::answer::DeclarationFormat;
use toolq_core::text::to_millis;
use toolq_engine::HostCall;

/// The longest id, in bytes.
const MAX_ID_BYTES: usize = 256;

/// What a line can be.
const KINDS: [&str; 8] = [
    "tools", "turn", "cancel", "approve", "result", "list", "plan", "reload",
];

/// The id that the host gave a line: a string or a number, which is repeated as it came.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct LineId(pub(super) Value);

/// A line of the host.
#[derive(Debug)]
pub(super) enum HostMessage {
    /// These are the tools that the host serves.
    Tools {
        id: Option<LineId>,
        tools: Box<RawValue>,
    },
    /// Answer the calls of a message.
    Turn { id: LineId, message: Box<RawValue> },
    /// Stop a turn.
    Cancel { id: LineId },
    /// Decide about a call that waits for an approval.
    Approve {
        id: LineId,
        question: u64,
        decision: HostDecision,
        reason: Option<String>,
    },
    /// The result of a call that the host serves.
    Result { id: LineId, result: HostCallResult },
    /// Declare the tools.
    List {
        id: LineId,
        format: DeclarationFormat,
    },
    /// Plan the calls of a message.
    Plan { id: LineId, message: Box<RawValue> },
    /// Read tools.yaml again.
    Reload { id: Option<LineId> },
}

/// The result of a call that the host serves.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostCallResult {
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    #[serde(rename = "id")]
    _id: IgnoredAny,
    pub(super) tool_use_id: String,
    /// The number that the call came with. Without it, the oldest call with this id is meant.
    #[serde(default)]
    pub(super) number: Option<u64>,
    #[serde(default)]
    pub(super) content: Option<Box<RawValue>>,
    #[serde(default)]
    pub(super) is_error: bool,
}

/// What is wrong with a line, and the id in it, so that the host can tell what it is about.
#[derive(Debug)]
pub(super) struct MessageError {
    pub(super) id: Option<LineId>,
    pub(super) message: String,
}

/// What every line has.
#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    id: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolsLine {
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    #[serde(rename = "id")]
    _id: Option<IgnoredAny>,
    tools: Box<RawValue>,
}

/// A `turn` or a `plan`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageLine {
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    #[serde(rename = "id")]
    _id: IgnoredAny,
    message: Box<RawValue>,
}

/// A `cancel` or a `reload`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BareLine {
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    #[serde(rename = "id")]
    _id: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApproveLine {
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    #[serde(rename = "id")]
    _id: IgnoredAny,
    #[serde(rename = "tool_use_id")]
    _tool_use_id: Option<IgnoredAny>,
    question: u64,
    decision: HostDecision,
    #[serde(default)]
    reason: Option<String>,
}

/// What the host says about a call that needs an approval.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum HostDecision {
    Yes,
    No,
    /// Nobody decides now. The call is answered without running, and somebody may decide before the turn comes again.
    Later,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListLine {
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    #[serde(rename = "id")]
    _id: IgnoredAny,
    format: String,
}

impl LineId {
    /// `None` if this can't be an id.
    fn new(value: Value) -> Option<Self> {
        match &value {
            Value::String(text) if !text.is_empty() && text.len() <= MAX_ID_BYTES => {}
            Value::Number(_) => {}
            _ => return None,
        }
        Some(Self(value))
    }
}

impl HostMessage {
    /// Reads a line.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn parse(line: &[u8]) -> Result<Self, MessageError> {
        let without_id = |message: String| MessageError { id: None, message };
        let envelope: Envelope = serde_json::from_slice(line)
            .map_err(|error| without_id(format!("this line isn't a JSON object: {error}")))?;
        let has_id = !envelope.id.is_null();
        let id = LineId::new(envelope.id);
        let kind = envelope.kind.as_deref().unwrap_or_default();
        if !KINDS.contains(&kind) {
            let kinds = KINDS.join("`, `");
            let message = format!(
                "`type` must be one of `{kinds}`; a model's message is sent as {{\"type\": \"turn\", \"id\": …, \"message\": …}}"
            );
            return Err(MessageError { id, message });
        }
        let may_lack_id = !has_id && matches!(kind, "tools" | "reload");
        if id.is_none() && !may_lack_id {
            let message =
                format!("`{kind}` needs an `id`: a number, or a text of 1 to {MAX_ID_BYTES} bytes");
            return Err(without_id(message));
        }
        let parsed = match (kind, id.clone()) {
            ("tools", id) => read(line).map(|ToolsLine { tools, .. }| Self::Tools { id, tools }),
            ("reload", id) => read(line).map(|_: BareLine| Self::Reload { id }),
            (kind, Some(id)) => Self::parse_with_id(kind, id, line),
            (_, None) => Err("it has no `id`".to_owned()),
        };
        parsed.map_err(|message| MessageError { id, message })
    }

    /// Reads a line of a kind that always has an id.
    fn parse_with_id(kind: &str, id: LineId, line: &[u8]) -> Result<Self, String> {
        Ok(match kind {
            "turn" => {
                let MessageLine { message, .. } = read(line)?;
                Self::Turn { id, message }
            }
            "plan" => {
                let MessageLine { message, .. } = read(line)?;
                Self::Plan { id, message }
            }
            "cancel" => {
                let _: BareLine = read(line)?;
                Self::Cancel { id }
            }
            "list" => {
                let ListLine { format, .. } = read(line)?;
                let known = format.parse().ok();
                let known = known.filter(|format| *format != DeclarationFormat::Markdown);
                let format = known.ok_or_else(|| format!("there is no format `{format}`"))?;
                Self::List { id, format }
            }
            "approve" => {
                let approve: ApproveLine = read(line)?;
                Self::Approve {
                    id,
                    question: approve.question,
                    decision: approve.decision,
                    reason: approve.reason,
                }
            }
            _ => Self::Result {
                id,
                result: read(line)?,
            },
        })
    }
}

fn read<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| error.to_string())
}

// The lines that the host process reads.

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
    let json = serde_json::to_string(&HostCallJson {
        tool_use_id: &call.call.tool_use_id,
        tool_name: &call.call.tool_name,
        effect: call.effect.name(),
        input: call.input.as_raw(),
        attempt: call.attempt,
        idempotency_key: &call.idempotency_key,
        timeout_ms: to_millis(call.timeout),
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

/// Returns the line that says that tools are in force.
pub(super) fn ready_line(id: Option<&LineId>) -> String {
    finish_line(json!({"type": "ready"}), id)
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
