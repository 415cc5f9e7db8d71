//! Tools, as resolved from tools.yaml.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json_schema::CompiledSchema;
use crate::os::Environment;
use crate::types::approval::ApprovalPolicy;
use crate::types::backing::{Backing, CommandBacking};
use crate::types::compare::{Compare, IgnorePattern, TextNormalizer};
use crate::types::env_file::EnvFile;
use crate::types::failure_policy::{CallTimeouts, OnDoubt, OnFailure, RetryPolicy};
use crate::types::locks::LockTemplates;
use crate::types::price::PriceTable;
use crate::types::safety::{Effect, RuleSetting, SafetyPolicy};
use crate::types::server::ServerConfig;
use crate::types::start_limits::{HostLimits, StartLimits};
use crate::types::template::Template;
use crate::types::unlocked_server::UnlockedServer;
use redact::Mask;

/// A valid tools.yaml, with every default applied and every template parsed.
#[derive(Debug, Clone)]
pub struct ToolsConfig {
    /// In the order of the file.
    pub tools: Vec<Arc<Tool>>,
    /// The servers whose tools are declared, in the order of the file.
    pub servers: Vec<Arc<ServerConfig>>,
    /// Those of them whose tools aren't known until they are asked, because tools.lock doesn't have them.
    pub unlocked: Vec<Arc<UnlockedServer>>,
    /// Maximum number of calls running at the same time, over everything.
    pub concurrency: NonZeroUsize,
    /// Absolute path. Commands run here, and inputs named in `paths` must stay inside.
    pub root: PathBuf,
    /// The directory of tools.yaml, absolute. Programs with a slash and `$ref` files are resolved against it.
    pub dir: PathBuf,
    /// tools.yaml, tools.lock and the like, which say what may run: only calls of `read` tools can be given their paths.
    pub own_files: Vec<PathBuf>,
    /// Names of environment variables whose values are masked everywhere: those under `secrets`, and those used in
    /// headers, query, env, or an API key.
    pub secrets: Vec<String>,
    /// The variables of `env_file`, for templates and `pass_env`.
    pub env_file: EnvFile,
    /// The file's own texts for models. Texts of a tool are in [`Tool::messages`].
    pub messages: MessageTemplates,
    /// Limits on requests, by host.
    pub hosts: Vec<HostLimits>,
    /// Token prices by model name.
    pub prices: PriceTable,
    /// What `format` in an `input_schema` does.
    pub formats: FormatPolicy,
    /// SHA-256 of the file's bytes, in hex.
    pub digest: String,
}

impl ToolsConfig {
    /// Returns the tool with exactly this name. What a server has announced takes the place of what the file has of its
    /// tool.
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        let mut unlocked = self.unlocked.iter();
        unlocked
            .find_map(|server| server.tool(name))
            .or_else(|| self.tools.iter().find(|tool| tool.name == name))
    }

    /// Like [`get`](Self::get), but a tool that a server may have that wasn't asked yet is found, too, and accepts any object.
    pub fn find(&self, name: &str) -> Option<Arc<Tool>> {
        self.get(name).cloned().or_else(|| {
            let mut unlocked = self.unlocked.iter();
            unlocked.find_map(|server| server.placeholder(name))
        })
    }

    /// Returns the tools of the file in its order, and then those that servers have announced.
    pub fn known_tools(&self) -> Vec<Arc<Tool>> {
        let declared = self.tools.iter();
        let declared = declared.map(|tool| Arc::clone(self.get(&tool.name).unwrap_or(tool)));
        let mut known: Vec<Arc<Tool>> = declared.collect();
        let is_declared = |tool: &&Arc<Tool>| self.tools.iter().any(|own| own.name == tool.name);
        for server in &self.unlocked {
            let Some(Ok(listing)) = server.listing() else {
                continue;
            };
            let announced = listing.tools.iter().filter(|tool| !is_declared(tool));
            known.extend(announced.cloned());
        }
        known
    }

    /// Returns the servers that have to be asked before calls of `tool` can be checked: its own, and others that may have one
    /// of its name, so that the order in which servers are asked doesn't matter.
    pub fn servers_to_ask(&self, tool: &Tool) -> Vec<Arc<UnlockedServer>> {
        let own = self.unlocked_server_of(tool);
        let Some(own) = own.filter(|server| server.listing().is_none()) else {
            return Vec::new();
        };
        let is_declared = self.tools.iter().any(|known| known.name == tool.name);
        let is_asked = |server: &&Arc<UnlockedServer>| {
            let may_have_it = !is_declared && server.may_serve(&tool.name);
            Arc::ptr_eq(server, own) || may_have_it && server.listing().is_none()
        };
        self.unlocked.iter().filter(is_asked).cloned().collect()
    }

    /// Returns why the definition of a tool isn't known although its server was asked.
    pub(crate) fn listing_failure(&self, tool: &Tool) -> Option<String> {
        let server = self.unlocked_server_of(tool)?;
        let name = &server.server.name;
        match server.listing()? {
            Ok(_) => Some(format!("the server {name} has no such tool")),
            Err(why) => Some(format!(
                "the server {name} couldn't be asked for its tools: {why}"
            )),
        }
    }

    fn unlocked_server_of(&self, tool: &Tool) -> Option<&Arc<UnlockedServer>> {
        let Some(Backing::Mcp(mcp)) = tool.backing.as_ref().filter(|_| tool.awaits_list) else {
            return None;
        };
        let mut unlocked = self.unlocked.iter();
        unlocked.find(|server| server.server.name == mcp.server.name)
    }

    /// Builds the mask over the values of `secrets` and of `env_file`.
    pub fn build_mask(&self, environment: &Environment) -> Mask {
        mask_variables(&self.secrets, environment, &self.env_file)
    }
}

/// Builds the mask over the values of environment variables, and over all values of a file. A variable of the file that
/// the environment has, too, is a secret in both.
pub fn mask_variables(names: &[String], environment: &Environment, file: &EnvFile) -> Mask {
    let names = names.iter().map(String::as_str).chain(file.names());
    let values = names.filter_map(|name| environment.get_os(name));
    let file_values = file.values().map(OsStr::new);
    Mask::new(values.chain(file_values).map(OsStr::as_bytes))
}

/// A named entry of tools.yaml, with the file's defaults applied.
#[derive(Debug, Clone)]
pub struct Tool {
    /// The name that calls use.
    pub name: String,
    /// Description for the model, as declared. [`Tool::description`] returns the effective one.
    pub description: String,
    /// Name for people.
    pub display_name: Option<String>,
    /// Groups tools in the markdown section of `toolq tools`.
    pub category: Option<String>,
    /// JSON Schema of the input, as declared, including the files that it refers to. [`Tool::input_schema`] returns the
    /// effective one.
    pub input_schema: Value,
    /// The program that reports the schema, if the file doesn't have it.
    pub describe: Option<Box<DescribeCommand>>,
    /// Whether it is a tool of a server that has to be asked for its definition. What the server says takes its place, so
    /// this never changes.
    pub awaits_list: bool,
    /// Decides whether calls may run concurrently with others.
    pub safety: SafetyPolicy,
    /// The settings that come from `rules`, except for the safety.
    pub rule_settings: Vec<RuleSetting>,
    /// What it does to the world.
    pub effect: Effect,
    /// Which of its calls start only after somebody said yes.
    pub approve: ApprovalPolicy,
    /// What its calls read and change. Without it, they are ordered by their concurrency safety alone.
    pub locks: Option<LockTemplates>,
    /// How many of its calls run at once, and how often they start.
    pub start_limits: StartLimits,
    /// Whether it may destroy something, as far as MCP clients are told.
    pub destructive: Option<bool>,
    /// Whether it reaches systems that nobody here controls, as far as MCP clients are told.
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
    /// On resume, finds out whether an interrupted call took effect.
    pub probe: Option<CommandBacking>,
    /// The format of the output.
    pub output: OutputKind,
    /// The JSON that stands for an empty output, in compact form. Only for [`OutputKind::Json`].
    pub empty_output: Option<String>,
    /// The JSON Schema of the output, including the files that it refers to. Only for [`OutputKind::Json`].
    pub output_schema: Option<Arc<CompiledSchema>>,
    /// Maximum number of output bytes that reach the model.
    pub max_output: u64,
    /// Maximum number of output bytes saved to a file if `max_output` cuts them.
    pub max_saved: u64,
    /// How old the result of an earlier call may be that answers a call with the same input. `None` runs each call.
    pub cache: Option<Duration>,
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

/// What the keyword `format` of a schema does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FormatPolicy {
    /// Nothing: it's a note for the model.
    #[default]
    Annotate,
    /// A value that doesn't have the format is invalid. Unknown formats are ignored.
    Assert,
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
    /// JSON Schema of the input, including the files that it refers to.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputKind {
    /// Text, passed on verbatim.
    Text,
    /// Must parse as JSON, and is passed on in compact form.
    Json,
    /// Content blocks of Anthropic or MCP.
    Content,
}

/// A key of `messages`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    CompletionDescription,
    CompletionResult,
    NewTaskDescription,
    NewTaskAgent,
    NewTaskTask,
}

/// The author's own texts for models. Keys that are missing fall back to the English defaults in `answer`.
pub type MessageTemplates = BTreeMap<MessageKey, Template>;
