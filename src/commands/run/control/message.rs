//! The lines that the host process writes.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_json::value::RawValue;

use toolq_core::answer::DeclarationFormat;

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
        is_yes: bool,
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
#[derive(Debug)]
pub(super) struct HostCallResult {
    pub(super) tool_use_id: String,
    /// The number that the call came with. Without it, the oldest call with this id is meant.
    pub(super) number: Option<u64>,
    pub(super) content: Option<Box<RawValue>>,
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultLine {
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    #[serde(rename = "id")]
    _id: IgnoredAny,
    tool_use_id: String,
    #[serde(default)]
    number: Option<u64>,
    #[serde(default)]
    content: Option<Box<RawValue>>,
    #[serde(default)]
    is_error: bool,
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
                let known = DeclarationFormat::parse(&format)
                    .filter(|format| *format != DeclarationFormat::Markdown);
                let format = known.ok_or_else(|| format!("there is no format `{format}`"))?;
                Self::List { id, format }
            }
            "approve" => {
                let approve: ApproveLine = read(line)?;
                Self::Approve {
                    id,
                    question: approve.question,
                    is_yes: matches!(approve.decision, Decision::Yes),
                    reason: approve.reason,
                }
            }
            _ => {
                let result: ResultLine = read(line)?;
                let result = HostCallResult {
                    tool_use_id: result.tool_use_id,
                    number: result.number,
                    content: result.content,
                    is_error: result.is_error,
                };
                Self::Result { id, result }
            }
        })
    }
}

fn read<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| error.to_string())
}
