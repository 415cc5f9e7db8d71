use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::types::backing::{Backing, CommandBacking};
use crate::types::compare::{Compare, Ignored};
use crate::types::price::Prices;
use crate::types::template::Template;

/// A tools.yaml that holds: every default applied, every template parsed.
#[derive(Debug, Clone)]
pub struct Tools {
    /// In the order of the file.
    pub tools: Vec<Arc<Tool>>,
    /// Calls running at once, over everything.
    pub concurrency: NonZeroUsize,
    /// Absolute. Commands run here, and inputs named in `paths` stay inside.
    pub root: PathBuf,
    /// The folder of tools.yaml, absolute: programs with a slash and files of `$ref` are found from here.
    pub dir: PathBuf,
    /// Names of environment variables whose values are masked everywhere: `secrets` and what stands in headers,
    /// query or env.
    pub secrets: Vec<String>,
    /// The file's texts that a model reads; those of a tool stand with it.
    pub messages: Messages,
    /// What tokens cost, by the name of a model.
    pub prices: Prices,
    /// SHA-256 of the file's bytes, in hex.
    pub digest: String,
}

impl Tools {
    /// The tool of this exact name.
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// A named entry of tools.yaml with everything that the file's defaults gave it.
#[derive(Debug, Clone)]
pub struct Tool {
    /// What a call names.
    pub name: String,
    /// For the model, as declared; [`Tool::description`] is what holds.
    pub description: String,
    /// For people.
    pub display_name: Option<String>,
    /// Groups tools in the markdown section of `toolq tools`.
    pub category: Option<String>,
    /// JSON Schema of the input as declared, with the files that it refers to; [`Tool::input_schema`] is what holds.
    pub input_schema: Value,
    /// Who knows its schema, where that is not in the file.
    pub describe: Option<Box<Describe>>,
    /// Whether its calls may run beside others.
    pub safety: Safety,
    /// What it does to the world.
    pub effect: Effect,
    /// Limits in time.
    pub timeout: Timeout,
    /// How long a call is expected to take; for `plan`.
    pub estimate: Option<Duration>,
    /// Inputs that are paths and must stay inside the root, as dotted names split (`a.b` is `["a", "b"]`).
    pub paths: Vec<Vec<String>>,
    /// What people see meanwhile.
    pub status: Status,
    /// What does the work; a tool may have none and still be planned and validated.
    pub backing: Option<Backing>,
    /// What is asked on resume whether a call that was interrupted did its work.
    pub probe: Option<CommandBacking>,
    /// What its output is.
    pub output: OutputKind,
    /// Bytes of output that reach the model.
    pub max_output: u64,
    /// Bytes of output that are kept in a file where `max_output` cut them.
    pub max_saved: u64,
    /// When an attempt is followed by another.
    pub retry: Retry,
    /// What its failure does to the other calls.
    pub on_failure: OnFailure,
    /// Failures in a row after which its calls are answered "paused"; 0 is never. Where nothing is said, that is never in a
    /// turn of the input, and three in an agent's.
    pub pause_after_failures: Option<u32>,
    /// Whether inputs that fail only by scalar types are mended.
    pub coerce: bool,
    /// How `replay` compares its results with recorded ones.
    pub compare: Compare,
    /// Parts of its results that `replay` leaves out.
    pub ignore: Vec<Ignored>,
    /// The texts that a model reads, the tool's own before the file's.
    pub messages: Messages,
}

impl Tool {
    /// What a model is told of it: what it said of itself, else what was declared.
    pub fn description(&self) -> &str {
        match self.said() {
            Some(Said::Well(said)) => said.description.as_deref().unwrap_or(&self.description),
            _ => &self.description,
        }
    }

    /// JSON Schema of its input: what it said of itself, else what was declared. Of a tool that describes itself and was
    /// not asked, it takes any object.
    pub fn input_schema(&self) -> &Value {
        match self.said() {
            Some(Said::Well(said)) => &said.input_schema,
            _ => &self.input_schema,
        }
    }

    /// What it said of itself; none where it does not describe itself, or was not asked yet.
    pub fn said(&self) -> Option<&Said> {
        self.describe.as_ref()?.said.get()
    }

    /// Whether it describes itself, and was not asked yet.
    pub fn is_unasked(&self) -> bool {
        self.describe.is_some() && self.said().is_none()
    }
}

/// `describe`: a program that prints what a tool does and what it takes.
#[derive(Debug, Clone)]
pub struct Describe {
    /// The program.
    pub command: CommandBacking,
    /// What it said, once it was asked. Whoever holds the tool finds it here.
    pub said: Arc<OnceLock<Said>>,
}

/// What a tool has said of itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// What holds from then on.
    Well(Description),
    /// Why it said nothing that can be used. Its calls can't be checked, and don't run.
    Nothing(String),
}

/// What a tool does and what it takes, in its own words.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Description {
    /// For the model, where it said that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the input, with the files that it refers to.
    pub input_schema: Value,
}

/// Who decides whether a call is concurrency-safe, resolved from the tool and the file's rules.
#[derive(Debug, Clone, PartialEq)]
pub enum Safety {
    /// `concurrency_safe: true` or `false`.
    Declared(bool),
    /// `concurrency_safe: {when: SCHEMA}`: safe where the input matches.
    When(Value),
    /// The first rule whose glob matches the tool's name.
    Rule(Rule),
    /// Declared `effect: read` is safe, any other is not.
    Effect(bool),
    /// Nothing was declared: not safe.
    Default,
}

/// One entry of `rules`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The glob as written.
    pub glob: String,
    /// What it decides.
    pub safe: bool,
}

/// What a tool does to the world, from the least on. Decides its default safety and whether a call that may have run is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Looks only.
    Read,
    /// Twice is like once.
    Idempotent,
    /// Anything else; what is not declared is this.
    Write,
}

impl Effect {
    /// The effect of this word, if it is one.
    pub fn of(word: &str) -> Option<Self> {
        [Self::Read, Self::Idempotent, Self::Write]
            .into_iter()
            .find(|effect| effect.name() == word)
    }

    /// The word of tools.yaml.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Idempotent => "idempotent",
            Self::Write => "write",
        }
    }
}

/// Limits in time of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeout {
    /// Of one attempt.
    pub after: Duration,
    /// Between asking a process to end and killing it.
    pub grace: Duration,
    /// After this much, people are told that it takes long.
    pub slow: Option<Duration>,
    /// Of all attempts together with the waits between them.
    pub total: Option<Duration>,
}

/// Templates of what people see while a call waits or runs.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// While it waits in the queue.
    pub wait: Option<Template>,
    /// While it runs.
    pub doing: Option<Template>,
}

/// What a tool's output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputKind {
    /// Text as it comes.
    Text,
    /// Must parse as JSON; sent on compact.
    Json,
    /// Anthropic content blocks.
    Content,
}

/// When an attempt is followed by another, and after how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// Attempts beyond the first.
    pub times: u32,
    /// What is retried.
    pub on: Vec<RetryOn>,
    /// Before the first repetition; doubled for each further one.
    pub backoff: Duration,
    /// The longest wait.
    pub max_backoff: Duration,
}

/// One entry of `retry.on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryOn {
    /// HTTP 429, or a connection or start that the system refused for now.
    RateLimited,
    /// Not started, not sent, connection failed, HTTP 502, 503, 504 or 529.
    Unavailable,
    /// `timeout.after` passed.
    Timeout,
    /// `exit:N`.
    Exit(i32),
    /// `http:N`.
    Http(u16),
}

/// What a failed call does to others of its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Nothing.
    Continue,
    /// Ends the running others of its batch.
    CancelSiblings,
    /// Later calls of the turn are not executed.
    Stop,
}

/// Which text of `messages` is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageKey {
    Timeout,
    Failed,
    Unavailable,
    RateLimited,
    InvalidInput,
    UnknownTool,
    AgentFailed,
    Paused,
    NotExecuted,
    Interrupted,
    InDoubt,
}

/// The author's own texts for a model; what is missing has an English default in `respond`.
pub type Messages = BTreeMap<MessageKey, Template>;
