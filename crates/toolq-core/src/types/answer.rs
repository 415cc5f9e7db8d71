//! The result of a call, in no particular dialect.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::value::RawValue;

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
#[derive(Debug, Clone)]
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

impl Default for CallReport {
    fn default() -> Self {
        Self {
            status: Status::Ok,
            error: None,
            duration: Duration::ZERO,
            attempts: 0,
            cached_age: None,
        }
    }
}
