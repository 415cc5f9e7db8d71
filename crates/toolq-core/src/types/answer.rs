//! The answer to a call, as a model, a client and the log read it.

use std::borrow::Cow;
use std::time::Duration;

use redact::Mask;
use regex::bytes::Regex;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::to_json_line;
use crate::types::call::CallKind;
use crate::types::status::Status;

/// The content of a result.
#[derive(Debug, Clone)]
pub enum ResultContent {
    /// Plain text.
    Text(String),
    /// Content blocks: text, image and document as Anthropic has them; audio, resource and link as MCP has them. A
    /// model reads the latter as text.
    Blocks(Vec<Box<RawValue>>),
}

impl ResultContent {
    /// Returns the text, or the blocks as JSON.
    pub fn to_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Blocks(blocks) => {
                let blocks: Vec<&str> = blocks.iter().map(|block| block.get()).collect();
                Cow::Owned(format!("[{}]", blocks.join(",")))
            }
        }
    }

    /// Whether there is neither text nor a block.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
        }
    }
}

/// What a server answered that MCP clients can read, and models can't. Secrets are masked.
#[derive(Debug, Clone, Default)]
pub struct ClientContent {
    /// The content as JSON, if the server describes such content.
    pub structured: Option<Box<RawValue>>,
    /// The server's own content blocks, if some of them aren't text.
    pub blocks: Option<Vec<Box<RawValue>>>,
}

/// The one result of a call, in no particular dialect.
#[derive(Debug, Clone)]
pub struct CallAnswer {
    /// The id of the call.
    pub tool_use_id: String,
    /// The id came as a number, and goes back as one.
    pub has_number_id: bool,
    /// How the input of the call was written.
    pub kind: CallKind,
    /// The name that the call requested.
    pub tool_name: String,
    /// What the model reads.
    pub content: ResultContent,
    /// Whether the model receives the result as an error.
    pub is_error: bool,
    /// What MCP clients get beside the content or in its place, if the tool belongs to a server.
    pub for_clients: Option<Box<ClientContent>>,
    /// How it came about. The model doesn't read it.
    pub report: CallReport,
}

/// How a call ended, for programs and people.
#[derive(Debug, Clone, Default)]
pub struct CallReport {
    /// How it ended, in one word.
    pub status: Status,
    /// Why it failed, with secrets masked; `None` for a success.
    pub error: Option<String>,
    /// From its start to its end; zero if this run didn't start it.
    pub duration: Duration,
    /// Number of attempts.
    pub attempts: u32,
    /// The age of the result, if it is that of an earlier call.
    pub cached_age: Option<Duration>,
}

/// How many bytes of an output a call gets that doesn't say how many.
pub const DEFAULT_PAGE_BYTES: u64 = 16 << 10;

/// What a call of `read_output` asks for.
#[derive(Debug, Clone)]
pub struct OutputRequest {
    /// The id of the call whose output was cut.
    pub id: String,
    /// The byte offset where reading begins. With a pattern, where the search begins.
    pub offset: u64,
    /// How many bytes of the output to return at most. `None` is the default.
    pub limit: Option<u64>,
    /// What to look for. Without one, the output is returned as it is.
    pub pattern: Option<Regex>,
}

/// What is left of an output that was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutOutput {
    /// The name of the file that has it, in the directory for outputs. `None` if it wasn't kept.
    pub file_name: Option<String>,
    /// Bytes received.
    pub total_bytes: u64,
}

/// Why a call of `read_output` gets nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputUnavailable {
    /// The conversation has no call with this id that has ended.
    UnknownId {
        /// The id.
        id: String,
        /// The ids of the latest calls whose outputs were cut and kept, in the order in which they ended.
        known: Vec<String>,
        /// How many earlier ones aren't listed.
        more: usize,
    },
    /// The call's result has the whole output.
    NotCut {
        /// The id.
        id: String,
    },
    /// The rest of the output wasn't kept.
    NotKept {
        /// The id.
        id: String,
    },
    /// The output was kept, but its file can't be read any more.
    Gone {
        /// The id.
        id: String,
    },
    /// The output ends before the offset.
    PastEnd {
        /// The offset.
        offset: u64,
        /// How many bytes there are.
        len: u64,
    },
    /// The calls can't be assigned to a conversation, so none of their outputs can be read.
    NoConversation,
}

/// The result of a call as found in a recording.
#[derive(Debug, Clone)]
pub struct RecordedResult {
    /// What the model received.
    pub content: ResultContent,
    /// Whether the model received it as an error, or `None` if the format doesn't say.
    pub is_error: Option<bool>,
    /// Whether the call was answered without being run.
    pub skipped: bool,
    /// Whether the call was rejected before anything ran, or `None` if the format doesn't say.
    pub rejected: Option<bool>,
}

/// A string that is serialized with its secrets masked.
#[derive(Debug, Clone, Copy, JsonSchema)]
#[schemars(transparent, inline)]
pub struct MaskedText<'a>(pub &'a str, #[schemars(skip)] pub &'a Mask);

/// A JSON value that is serialized on one line with its secrets masked. Digits and key order are preserved. Works only
/// with `serde_json`.
#[derive(Debug, Clone, Copy)]
pub struct MaskedJson<'a>(pub &'a RawValue, pub &'a Mask);

/// The content of a result, serialized with its secrets masked as a string or an array of content blocks.
#[derive(Debug, Clone, Copy)]
pub struct MaskedContent<'a>(pub &'a ResultContent, pub &'a Mask);

impl Serialize for MaskedText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.1.apply(self.0))
    }
}

impl Serialize for MaskedJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let masked = self.1.apply_to_json(self.0.get());
        let line = to_json_line(&masked);
        match (&masked, &line) {
            (Cow::Borrowed(_), Cow::Borrowed(_)) => self.0.serialize(serializer),
            _ => RawValue::from_string(line.into_owned())
                .map_err(S::Error::custom)?
                .serialize(serializer),
        }
    }
}

impl Serialize for MaskedContent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(content, mask) = *self;
        match content {
            ResultContent::Text(text) => MaskedText(text, mask).serialize(serializer),
            ResultContent::Blocks(blocks) => {
                serializer.collect_seq(blocks.iter().map(|block| MaskedJson(block, mask)))
            }
        }
    }
}

/// The input of a call: an object, or a string if masking a secret would have broken the JSON.
impl JsonSchema for MaskedJson<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Input".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": ["object", "string"]})
    }
}
