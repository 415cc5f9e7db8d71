//! Backings: what does the work of a tool.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::types::agent::{AgentBacking, BuiltinTool};
use crate::types::http_backing::HttpBacking;
use crate::types::sandbox::Sandbox;
use crate::types::server::McpBacking;
use crate::types::template::Template;
use crate::types::wrapper::CommandWrapper;

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

/// `command`: a program, its arguments, and its environment.
#[derive(Debug, Clone)]
pub struct CommandBacking {
    /// As declared. A relative path that contains a slash is resolved against the directory of tools.yaml; in a wrapper, it
    /// has been.
    pub program: String,
    /// The arguments after the program name, in order. Each becomes one argument, or one for each element of an array. They
    /// never contain environment variables: every user of the machine can see a program's arguments.
    pub arguments: Vec<Template>,
    /// Inputs that may begin with `-` in an argument of their own. Dotted names are split: `a.b` is `["a", "b"]`.
    pub dashes: Vec<Vec<String>>,
    /// What the program reads from stdin.
    pub stdin: StdinSource,
    /// Environment variables to set.
    pub env: Vec<(String, Template)>,
    /// Names of toolq's own environment variables that the program inherits.
    pub pass_env: Vec<String>,
    /// Working directory: absolute and inside the root.
    pub cwd: PathBuf,
    /// Exit codes that count as success.
    pub success_exit: Vec<i32>,
    /// When the model reads what the program wrote to stderr.
    pub stderr: StderrUse,
    /// What happens to processes that the program leaves running.
    pub leftovers: Leftovers,
    /// Resource limits of the program and its descendants.
    pub limits: CommandLimits,
    /// What the program can reach. `None` leaves that to the system.
    pub sandbox: Option<Sandbox>,
    /// What runs the program.
    pub wrapper: Option<CommandWrapper>,
}

/// When the model reads the end of what a program wrote to stderr.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StderrUse {
    /// If it failed, or printed nothing else.
    #[default]
    OnFailure,
    /// Always: behind the output, if that is text.
    Always,
    /// Never.
    Never,
}

/// What happens to processes that are still running after the program itself has exited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Leftovers {
    /// Kill them. The session log records how many there were.
    #[default]
    Kill,
    /// Kill them and tell the model.
    Report,
    /// Let them run, even after toolq exits.
    Allow,
}

/// Resource limits of a program. For a limit that is `None`, toolq sets no limit of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommandLimits {
    /// CPU time per process, in whole seconds.
    pub cpu: Option<Duration>,
    /// Address space per process, in bytes.
    pub memory: Option<u64>,
    /// Open file descriptors per process.
    pub files: Option<u64>,
    /// Processes of one call that may be alive at the same time.
    pub processes: Option<u64>,
    /// Size of a file that a process writes, in bytes.
    pub file_size: Option<u64>,
}

/// Identifies one of the [`CommandLimits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the keys of tools.yaml")]
pub enum LimitKind {
    Cpu,
    Memory,
    Files,
    Processes,
    FileSize,
}

impl LimitKind {
    /// The key in tools.yaml.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Files => "files",
            Self::Processes => "processes",
            Self::FileSize => "file_size",
        }
    }
}

/// What a command reads from stdin.
#[derive(Debug, Clone)]
pub enum StdinSource {
    /// The input as JSON.
    Input,
    /// Nothing: stdin is empty.
    None,
    /// The text of a template.
    Template(Template),
}
