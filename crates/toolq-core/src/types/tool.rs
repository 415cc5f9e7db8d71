//! Tools, as resolved from tools.yaml.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::unescape_pointer_token;
use crate::json_schema::CompiledSchema;
use crate::text::describe_regex_error;
use crate::types::agent::AgentBacking;
use crate::types::backing::{CommandBacking, HttpBacking};
use crate::types::policies::{
    ApprovalPolicy, CachePolicy, Effect, LockTemplates, OncePolicy, SafetyPolicy, StartLimits,
};
use crate::types::server::McpBacking;
use crate::types::template::Template;

/// How much of an output reaches the model if the file doesn't say, in bytes.
pub(crate) const DEFAULT_MAX_OUTPUT: u64 = 64 << 10;

/// How much of a longer one is saved if the file doesn't say, in bytes.
pub(crate) const DEFAULT_MAX_SAVED: u64 = 64 << 20;

/// A named entry of tools.yaml, with the file's defaults applied.
#[derive(Debug, Clone, Default)]
pub struct Tool {
    /// The name that calls use.
    pub name: String,
    /// Description for the model, as declared. [`Tool::description`] returns the effective one.
    pub description: String,
    /// Name for people.
    pub display_name: Option<String>,
    /// Groups tools in the markdown section of `toolq tools`.
    pub category: Option<String>,
    /// JSON Schema of the input, as declared. [`Tool::input_schema`] returns the effective one.
    pub input_schema: Value,
    /// The program that reports the schema, if the file doesn't have it.
    pub describe: Option<Box<DescribeCommand>>,
    /// Whether it is a tool of a server that has to be asked for its definition. What the server says takes its place, so
    /// this never changes.
    pub awaits_list: bool,
    /// Decides whether calls may run concurrently with others.
    pub safety: SafetyPolicy,
    /// What it does to the world.
    pub effect: Effect,
    /// Which of its calls need an approval before they start.
    pub approve: ApprovalPolicy,
    /// What its calls read and change. Without it, they are ordered by their concurrency safety alone.
    pub locks: Option<LockTemplates>,
    /// How many of its calls run at once, and how often they start.
    pub start_limits: StartLimits,
    /// Whether it may destroy something, as declared to MCP clients.
    pub destructive: Option<bool>,
    /// Whether it reaches systems outside of the user's control, as declared to MCP clients.
    pub open_world: Option<bool>,
    /// Time limits.
    pub timeout: CallTimeouts,
    /// How long a call is expected to take. Used by `plan`.
    pub estimate: Option<Duration>,
    /// Inputs that are paths and must stay inside the root. Dotted names are split: `a.b` is `["a", "b"]`.
    pub paths: Vec<Vec<String>>,
    /// Progress texts shown while a call waits or runs.
    pub status: StatusTemplates,
    /// What does the work. A tool without a backing can still be planned and validated.
    pub backing: Option<Backing>,
    /// Finds out whether an interrupted call took effect, when it is asked for again.
    pub probe: Option<CommandBacking>,
    /// The format of the output.
    pub output: OutputKind,
    /// Whether a program's output is shown as it was printed, not as a terminal would show it. Only for [`OutputKind::Text`].
    pub raw_output: bool,
    /// The JSON that replaces an empty output, in compact form. Only for [`OutputKind::Json`].
    pub empty_output: Option<String>,
    /// The JSON Schema of the output. Only for [`OutputKind::Json`].
    pub output_schema: Option<Arc<CompiledSchema>>,
    /// Maximum number of output bytes that reach the model.
    pub max_output: u64,
    /// Maximum number of output bytes saved to a file if `max_output` cuts them.
    pub max_saved: u64,
    /// When the result of an earlier call answers a call with the same input. `None` runs each call.
    pub cache: Option<CachePolicy>,
    /// Which of its calls are the same, whatever their ids. `None` if their ids say that.
    pub once: Option<OncePolicy>,
    /// When a failed attempt is retried.
    pub retry: RetryPolicy,
    /// What a failed call does to the other calls.
    pub on_failure: OnFailure,
    /// What a call in doubt does to the later calls of its turn.
    pub on_doubt: OnDoubt,
    /// Number of failures in a row after which calls are answered "paused". 0 means never. The default is never for
    /// turns of the input, and 3 inside an agent.
    pub pause_after_failures: Option<u32>,
    /// Whether to convert inputs that fail validation only because of scalar types.
    pub coerce: bool,
    /// How `replay` compares its results with recorded ones.
    pub compare: Compare,
    /// Parts of results that `replay` ignores.
    pub ignore: Vec<IgnorePattern>,
    /// What `replay` replaces in texts before it compares them: the tool's own, then those of the file.
    pub normalize: Vec<TextNormalizer>,
    /// Texts for the model. The tool's own texts take precedence over the file's.
    pub messages: MessageTemplates,
}

impl Tool {
    /// Returns the description for the model: the tool's own if it described itself, or else the declared one.
    pub fn description(&self) -> &str {
        match self.describe_result() {
            Some(DescribeResult::Ok(described)) => described
                .description
                .as_deref()
                .unwrap_or(&self.description),
            _ => &self.description,
        }
    }

    /// Returns the JSON Schema of the input: the tool's own if it described itself, or else the declared one. A tool
    /// that has yet to describe itself accepts any object.
    pub fn input_schema(&self) -> &Value {
        match self.describe_result() {
            Some(DescribeResult::Ok(described)) => &described.input_schema,
            _ => &self.input_schema,
        }
    }

    /// Returns the program that hands over the tool's command to a daemon or another host, if its wrapper has one.
    pub fn hands_over_to(&self) -> Option<&str> {
        match &self.backing {
            Some(Backing::Command(command)) => command.wrapper.as_ref()?.hands_over_to.as_deref(),
            _ => None,
        }
    }

    /// Returns the result of `describe`, or `None` if the tool has no `describe` or it hasn't run yet.
    pub fn describe_result(&self) -> Option<&DescribeResult> {
        self.describe.as_ref()?.result.get()
    }

    /// Whether the schema isn't known: the tool has a `describe` that hasn't run yet, or its server has to be asked.
    pub fn needs_describe(&self) -> bool {
        self.awaits_list || self.describe.is_some() && self.describe_result().is_none()
    }
}

/// `describe`: a program that prints the description and input schema of a tool.
#[derive(Debug, Clone)]
pub struct DescribeCommand {
    /// The program to run.
    pub command: CommandBacking,
    /// The program's result, set once it has run. Shared by all clones of the tool.
    pub result: Arc<OnceLock<DescribeResult>>,
}

/// The result of a `describe` program.
#[derive(Debug, Clone, PartialEq)]
pub enum DescribeResult {
    /// The tool's description, which applies from then on.
    Ok(ToolDescription),
    /// Why there is no usable description. Calls of the tool can't be validated, and don't run.
    Err(String),
}

/// What a tool reported about itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolDescription {
    /// Description for the model, if reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the input.
    pub input_schema: Value,
}

/// Templates for the progress texts of a call.
#[derive(Debug, Clone, Default)]
pub struct StatusTemplates {
    /// Shown while the call waits in the queue.
    pub wait: Option<Template>,
    /// Shown while the call runs.
    pub doing: Option<Template>,
}

/// The format of a tool's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputKind {
    /// Text, passed on verbatim.
    #[default]
    Text,
    /// Must parse as JSON, and is passed on in compact form.
    Json,
    /// Content blocks of Anthropic or MCP.
    Content,
}

/// A key of `messages`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the keys of tools.yaml")]
pub enum MessageKey {
    Timeout,
    Failed,
    Unavailable,
    RateLimited,
    InvalidInput,
    UnknownTool,
    AgentFailed,
    MaxTurns,
    Paused,
    NeedsApproval,
    Denied,
    NotExecuted,
    Interrupted,
    InDoubt,
    EmptyOutput,
    AlreadyDone,
}

/// The author's own texts for models. Keys that are missing fall back to the English defaults in `answer`.
pub type MessageTemplates = BTreeMap<MessageKey, Template>;

/// What does the work of a tool.
#[derive(Debug, Clone)]
pub enum Backing {
    /// Runs a program.
    Command(CommandBacking),
    /// Sends an HTTP request.
    Http(HttpBacking),
    /// Hands the input to a model that has tools of its own.
    Agent(Box<AgentBacking>),
    /// Calls a tool of a server.
    Mcp(McpBacking),
    /// Handled by toolq itself.
    Builtin(BuiltinTool),
    /// Served by the process that embeds toolq.
    Host,
}

/// A tool that is built into toolq.
#[derive(Debug, Clone)]
pub enum BuiltinTool {
    /// `attempt_completion`: its `result` becomes the answer, and nothing after it runs.
    AttemptCompletion,
    /// `new_task`: hands `task` to one of these agents.
    NewTask(Vec<Arc<Tool>>),
    /// `read_output`: returns a part of an earlier output of the same conversation that was cut.
    ReadOutput,
}

/// Time limits of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTimeouts {
    /// Limit of one attempt.
    pub after: Duration,
    /// Time between asking a process to terminate and killing it.
    pub kill_grace: Duration,
    /// After this time, people see a notice that the call is slow.
    pub slow_after: Option<Duration>,
    /// Limit of all attempts together, including the waits between them.
    pub total: Option<Duration>,
}

impl Default for CallTimeouts {
    fn default() -> Self {
        Self {
            after: Duration::from_secs(30),
            kill_grace: Duration::from_secs(2),
            slow_after: None,
            total: None,
        }
    }
}

/// When a failed attempt is retried, and after how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum number of attempts after the first.
    pub max_retries: u32,
    /// The failures to retry.
    pub conditions: Vec<RetryCondition>,
    /// Wait before the first retry. Doubles with each further one.
    pub initial_backoff: Duration,
    /// Maximum wait between two attempts.
    pub max_backoff: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 1,
            conditions: vec![RetryCondition::RateLimited],
            initial_backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(30),
        }
    }
}

/// One entry of `retry.on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryCondition {
    /// HTTP 429, or a connection or process that the system temporarily refused.
    RateLimited,
    /// Not started, not sent, connection failed, or HTTP 502, 503, 504, or 529.
    Unavailable,
    /// `timeout.after` passed.
    Timeout,
    /// `exit:N`.
    Exit(i32),
    /// `http:N`.
    Http(u16),
}

/// What a failed call does to the other calls of its turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Leave the other calls alone.
    #[default]
    Continue,
    /// Cancel the running calls of its batch.
    CancelSiblings,
    /// Don't execute the later calls of the turn.
    Stop,
}

/// What a call in doubt does to the later calls of its turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDoubt {
    /// Don't execute them until the doubt is resolved: they may build on what isn't known to have happened.
    #[default]
    Stop,
    /// Leave them alone.
    Continue,
}

/// How `replay` compares a tool's results with recorded ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// Compare character by character.
    Exact,
    /// Compare JSON as JSON, also inside strings, and other text as text.
    #[default]
    Json,
    /// Compare only the shape of JSON, that is, keys and types. Other text is not compared.
    Schema,
    /// Don't compare.
    None,
}

/// A part of a result that may differ: `/a/b` (RFC 6901) from the root, or `//a/b` for any `b` inside an `a`, at any
/// depth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnorePattern {
    at_any_depth: bool,
    /// Unescaped. Never empty.
    parts: Vec<String>,
}

impl IgnorePattern {
    /// Parses `/pointer` or `//name`.
    ///
    /// # Errors
    /// `text` is neither. The error says what is expected, in one sentence without a period.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = || {
            format!("`{text}` isn't part of a result: write `/pointer`, or `//name` at any depth")
        };
        let rest = text.strip_prefix('/').ok_or_else(expected)?;
        let (at_any_depth, rest) = match rest.strip_prefix('/') {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        if rest.is_empty() {
            return Err(expected());
        }
        let parts = rest.split('/').map(unescape_pointer_token).collect();
        Ok(Self {
            at_any_depth,
            parts,
        })
    }

    /// Whether the pattern matches the part at `path`.
    pub fn matches<T: AsRef<str>>(&self, path: &[T]) -> bool {
        let own = self.parts.iter().map(String::as_str);
        let surplus = path.len().checked_sub(self.parts.len());
        let Some(prefix_len) = surplus.filter(|prefix_len| self.at_any_depth || *prefix_len == 0)
        else {
            return false;
        };
        own.eq(path[prefix_len..].iter().map(AsRef::as_ref))
    }
}

/// Replaces parts of texts before they are compared, such as times, hashes and durations.
#[derive(Debug, Clone)]
pub struct TextNormalizer {
    pattern: Regex,
    /// May refer to groups of the pattern: `$1`, `${name}`.
    replacement: String,
}

impl TextNormalizer {
    /// Creates a normalizer that replaces each match of the regular expression `pattern`.
    ///
    /// # Errors
    /// `pattern` isn't a regular expression. The error says what is wrong with it, in one line.
    pub fn new(pattern: &str, replacement: &str) -> Result<Self, String> {
        let pattern = Regex::new(pattern).map_err(|error| describe_regex_error(&error))?;
        Ok(Self {
            pattern,
            replacement: replacement.to_owned(),
        })
    }

    /// Creates a normalizer that removes each match of the regular expression `pattern`.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn removing(pattern: &str) -> Result<Self, String> {
        Self::new(pattern, "")
    }

    /// Replaces all matches in `text`.
    pub fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.pattern.replace_all(text, &*self.replacement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_match_is_replaced() {
        let apply = |pattern: &str, replacement: &str, text: &str| {
            let normalizer = TextNormalizer::new(pattern, replacement).unwrap();
            normalizer.apply(text).into_owned()
        };
        assert_eq!(apply(r"\d+", "N", "1 of 20"), "N of N");
        assert_eq!(apply(r"(\w+)=\w+", "$1=X", "a=b c"), "a=X c");
        assert_eq!(apply(r"(?m)^#.*\n", "", "# x\ny\n"), "y\n");
        for (wrong, why) in [
            ("(", "unclosed group"),
            (
                "a(?=b)",
                "look-around, including look-ahead and look-behind, is not supported",
            ),
        ] {
            assert_eq!(TextNormalizer::new(wrong, "").unwrap_err(), why);
        }
    }

    #[test]
    fn a_part_is_matched_by_its_path() {
        let at = |text: &str, path: &[&str]| IgnorePattern::parse(text).unwrap().matches(path);
        assert!(at("/a", &["a"]) && !at("/a", &["b", "a"]) && !at("/a", &["a", "b"]));
        assert!(at("//a", &["a"]) && at("//a", &["b", "a"]) && !at("//a", &["a", "b"]));
        assert!(at("//a/0", &["b", "a", "0"]) && !at("//a/0", &["0"]));
        assert!(at("/a~1b/~0", &["a/b", "~"]));
        assert!(at("/a/", &["a", ""]));
        for wrong in ["", "a", "/", "//", "$.a"] {
            assert!(IgnorePattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
