//! Backings: what does the work of a tool.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::types::agent::{AgentBacking, BuiltinTool};
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
    /// The arguments after the program name, in order.
    pub arguments: Vec<ArgumentTemplate>,
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
    /// What happens to processes that the program leaves running.
    pub leftovers: Leftovers,
    /// Resource limits of the program and its descendants.
    pub limits: CommandLimits,
    /// What the program can reach. `None` leaves that to the system.
    pub sandbox: Option<Sandbox>,
    /// What runs the program.
    pub wrapper: Option<CommandWrapper>,
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

/// One element of `argv`. It becomes one argument, or one for each element of an array.
#[derive(Debug, Clone)]
pub struct ArgumentTemplate {
    /// Never contains an environment variable: every user of the machine can see a program's arguments.
    pub template: Template,
    /// Whether each value must consist of digits, because it stands in code, as a line number.
    pub digits_only: bool,
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

/// `http`: a request, and how its response is read.
#[derive(Debug, Clone)]
pub struct HttpBacking {
    /// Defaults to GET.
    pub method: HttpMethod,
    /// Input values may appear only in the path or after it, unless the URL is a single value and `hosts` is set.
    pub url: Template,
    /// `hosts`: if the input supplies the whole URL, the only hosts that may be contacted, and only at public
    /// addresses.
    pub allowed_hosts: Option<Vec<HostPattern>>,
    /// Query parameters, as name and value.
    pub query: Vec<(String, Template)>,
    /// Header names are lowercase.
    pub headers: Vec<(String, Template)>,
    /// The body to send.
    pub body: RequestBody,
    /// Statuses that count as success.
    pub success_status: Vec<StatusRange>,
    /// JSON pointer to the part of the response that becomes the result.
    pub select: Option<String>,
    /// Maximum number of redirects to follow, all within the same origin.
    pub max_redirects: u32,
    /// Proxy URL. Proxy variables in the environment are ignored.
    pub proxy: Option<Template>,
}

/// One entry of `hosts`, normalized like a parsed URL: lowercase and punycode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// Exactly this host.
    Exact(String),
    /// `*.` followed by this suffix: every subdomain of it, but not the suffix itself.
    Subdomains(String),
}

impl HostPattern {
    /// Whether this pattern matches the host of a parsed URL.
    pub fn matches(&self, host: &str) -> bool {
        match self {
            Self::Exact(exact) => host == exact,
            Self::Subdomains(suffix) => host
                .strip_suffix(suffix)
                .is_some_and(|label| label.len() > 1 && label.ends_with('.')),
        }
    }
}

/// Formats the pattern as it would be written in tools.yaml.
impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(host) => f.write_str(host),
            Self::Subdomains(suffix) => write!(f, "*.{suffix}"),
        }
    }
}

/// First and last status, both inclusive.
pub type StatusRange = RangeInclusive<u16>;

/// The methods of RFC 9110 and RFC 5789 that a tool may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "the names are the methods")]
pub enum HttpMethod {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

impl HttpMethod {
    /// The method name as sent in a request.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether requests with this method have a body by default.
    pub fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

/// The body of a request.
#[derive(Debug, Clone)]
pub enum RequestBody {
    /// The input as JSON.
    Input,
    /// Nothing.
    None,
    /// A JSON tree whose strings are templates.
    Json(BodyTemplate),
}

/// A JSON tree whose strings are templates. Object keys never are.
#[derive(Debug, Clone)]
pub enum BodyTemplate {
    /// A number, boolean, or null, as declared.
    Literal(serde_json::Value),
    /// A string. If it consists of a single placeholder, the value keeps its type.
    Template(Template),
    /// An array. An optional value that is missing drops its element.
    Array(Vec<BodyTemplate>),
    /// An object. An optional value that is missing drops its pair.
    Object(Vec<(String, BodyTemplate)>),
}

impl BodyTemplate {
    /// Returns the templates in the tree, in order.
    pub fn templates(&self) -> Vec<&Template> {
        match self {
            Self::Literal(_) => Vec::new(),
            Self::Template(template) => vec![template],
            Self::Array(items) => items.iter().flat_map(Self::templates).collect(),
            Self::Object(pairs) => {
                let values = pairs.iter().map(|(_, value)| value);
                values.flat_map(Self::templates).collect()
            }
        }
    }
}
