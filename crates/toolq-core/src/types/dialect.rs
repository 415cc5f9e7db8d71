//! The wire formats that toolq reads and writes, with the names by which flags know them.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_with::{DeserializeFromStr, SerializeDisplay};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// The wire format of an agent's API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Api {
    /// Anthropic's Messages API.
    #[default]
    #[serde(rename = "anthropic")]
    Anthropic,
    /// OpenAI chat completions, which many other servers implement.
    #[serde(rename = "openai-chat")]
    OpenAiChat,
}

/// The wire format of an input.
#[derive(Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Anthropic Messages API: a response, message, request, content block, or array of blocks.
    #[default]
    Anthropic,
    /// OpenAI chat completions: `tool_calls`, with arguments as a JSON string.
    #[strum(to_string = "openai-chat")]
    OpenAiChat,
    /// OpenAI responses: `function_call` items, answered by `call_id`.
    #[strum(to_string = "openai-responses")]
    OpenAiResponses,
    /// Gemini: `functionCall` parts.
    Gemini,
    /// Amazon Bedrock's Converse API: `toolUse` blocks.
    Bedrock,
    /// Ollama: `tool_calls`, with arguments as objects.
    Ollama,
    /// A Claude Code session log: JSONL with one content block per line.
    ClaudeCode,
    /// A Codex rollout: JSONL of `response_item` lines.
    Codex,
    /// A toolq session log.
    Toolq,
}

impl Dialect {
    /// Every dialect, in the order of the documentation.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The value that `--from` accepts.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether it is a program's session log, which has lines that only that program knows.
    pub fn is_log(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::Codex | Self::Toolq)
    }
}

/// The dialect of an API's responses.
impl From<Api> for Dialect {
    fn from(api: Api) -> Self {
        match api {
            Api::Anthropic => Self::Anthropic,
            Api::OpenAiChat => Self::OpenAiChat,
        }
    }
}

/// The vendor of a stream of events, whose APIs may have several dialects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
pub enum StreamVendor {
    /// The Messages API.
    #[strum(to_string = "anthropic-sse")]
    Anthropic,
    /// Chat completions and responses.
    #[strum(to_string = "openai-sse")]
    OpenAi,
    /// `streamGenerateContent`.
    #[strum(to_string = "gemini-sse")]
    Gemini,
}

impl StreamVendor {
    /// Every vendor, in the order of the documentation.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The value that `--from` accepts.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the vendor whose streams have messages of `dialect`.
    pub(crate) fn of_dialect(dialect: Dialect) -> Self {
        match dialect {
            Dialect::OpenAiChat | Dialect::OpenAiResponses => Self::OpenAi,
            Dialect::Gemini => Self::Gemini,
            _ => Self::Anthropic,
        }
    }
}

/// The form of the results of one turn. It mirrors the form of the calls, unless `--to` overrides it.
#[derive(
    Display, EnumString, IntoStaticStr, VariantArray, SerializeDisplay, DeserializeFromStr,
)]
#[strum(serialize_all = "kebab-case")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum AnswerForm {
    /// `{"role":"user","content":[{"type":"tool_result",…}]}`
    #[default]
    Message,
    /// An array of `tool_result` blocks.
    Blocks,
    /// A single `tool_result` block, which answers a single `tool_use` block.
    Block,
    /// One `tool_result` block per line, each written as soon as it and all earlier ones are available.
    BlockLines,
    /// An array of `{"role":"tool",…}` messages.
    #[strum(to_string = "openai-chat")]
    OpenAiChat,
    /// An array of `function_call_output` items.
    #[strum(to_string = "openai-responses")]
    OpenAiResponses,
    /// `{"role":"user","parts":[{"functionResponse":…}]}`
    Gemini,
    /// `{"role":"user","content":[{"toolResult":…}]}`
    Bedrock,
    /// An array of `{"role":"tool",…}` messages that name their tool.
    Ollama,
    /// An array of results with their statuses, for programs.
    Results,
    /// One such result per line, each written as soon as it and all earlier ones are available.
    ResultLines,
}

impl AnswerForm {
    /// Every form, in the order of the documentation.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The value that `--to` accepts. A single block can only mirror another one.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns whether each result is a line of its own.
    pub fn has_line_per_result(self) -> bool {
        matches!(self, Self::BlockLines | Self::ResultLines)
    }
}

/// How an input arranges its turns, which determines how the output arranges their results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputLayout {
    /// One JSON document: a single document answers all open turns.
    Document,
    /// A sequence of values (JSONL, session logs): one output line per turn.
    Lines,
}
