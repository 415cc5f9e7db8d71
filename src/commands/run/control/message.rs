//! The lines of the control protocol: what the host process writes, and what it reads.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The longest id, in bytes.
const MAX_ID_BYTES: usize = 256;

/// The id that the host gave a turn: a string or a number, which is repeated as it came.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct TurnId(Value);

/// A line of the host.
#[derive(Debug)]
pub(super) enum HostMessage {
    /// Answer the calls of a message.
    Turn { id: TurnId, message: Box<RawValue> },
    /// Stop a turn.
    Cancel { id: TurnId },
    /// Decide about a call that waits for an approval.
    Approve {
        id: TurnId,
        tool_use_id: String,
        is_yes: bool,
        reason: Option<String>,
    },
}

/// What is wrong with a line, and the id in it, so that the host can tell what it is about.
#[derive(Debug)]
pub(super) struct MessageError {
    pub(super) id: Option<TurnId>,
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
struct TurnLine {
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    #[serde(rename = "id")]
    _id: IgnoredAny,
    message: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelLine {
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    #[serde(rename = "id")]
    _id: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApproveLine {
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    #[serde(rename = "id")]
    _id: IgnoredAny,
    tool_use_id: String,
    decision: Decision,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Yes,
    No,
}

impl TurnId {
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
            .map_err(|error| without_id(format!("this line is no JSON object: {error}")))?;
        let id = TurnId::new(envelope.id.clone());
        let kind = envelope.kind.as_deref().unwrap_or_default();
        if !["turn", "cancel", "approve"].contains(&kind) {
            return Err(MessageError {
                id,
                message: "`type` must be `turn`, `cancel` or `approve`; a model's message is sent as {\"type\": \"turn\", \"id\": …, \"message\": …}".to_owned(),
            });
        }
        let Some(id) = id else {
            let message =
                format!("`{kind}` needs an `id`: a number, or a text of 1 to {MAX_ID_BYTES} bytes");
            return Err(without_id(message));
        };
        let parsed = match kind {
            "turn" => serde_json::from_slice(line).map(|turn: TurnLine| Self::Turn {
                id: id.clone(),
                message: turn.message,
            }),
            "cancel" => {
                serde_json::from_slice(line).map(|_: CancelLine| Self::Cancel { id: id.clone() })
            }
            _ => serde_json::from_slice(line).map(|approve: ApproveLine| Self::Approve {
                id: id.clone(),
                tool_use_id: approve.tool_use_id,
                is_yes: matches!(approve.decision, Decision::Yes),
                reason: approve.reason,
            }),
        };
        parsed.map_err(|error| MessageError {
            id: Some(id),
            message: error.to_string(),
        })
    }
}

/// Returns the line that answers a turn. `message` is JSON.
pub(super) fn answer_line(id: &TurnId, message: &str) -> String {
    format!(
        "{{\"type\":\"answer\",\"id\":{},\"message\":{message}}}\n",
        id.0
    )
}

/// Returns the line that asks for an approval. `call` is JSON.
pub(super) fn approval_line(id: &TurnId, call: &str) -> String {
    let call = call.trim_end();
    format!(
        "{{\"type\":\"approval\",\"id\":{},\"call\":{call}}}\n",
        id.0
    )
}

/// Returns the line that says what was wrong.
pub(super) fn error_line(id: Option<&TurnId>, message: &str) -> String {
    let mut line =
        json!({"type": "error", "error": {"type": "invalid_request", "message": message}});
    if let Some(id) = id {
        line["id"] = id.0.clone();
    }
    format!("{line}\n")
}
