use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::types::agent::{AgentBacking, Builtin};
use crate::types::template::Template;

/// What does a tool's work.
#[derive(Debug, Clone)]
pub enum Backing {
    /// A program.
    Command(CommandBacking),
    /// A request.
    Http(HttpBacking),
    /// A model with tools.
    Agent(Box<AgentBacking>),
    /// toolq itself.
    Builtin(Builtin),
}

/// `command`: a program, its arguments and what it is given.
#[derive(Debug, Clone)]
pub struct CommandBacking {
    /// As declared; one with a slash and no leading one stands beside tools.yaml.
    pub program: String,
    /// Behind the program, in order.
    pub arguments: Vec<Argument>,
    /// What it reads.
    pub stdin: Stdin,
    /// Variables that it gets.
    pub env: Vec<(String, Template)>,
    /// Variables of toolq's own environment that pass to it.
    pub pass_env: Vec<String>,
    /// Absolute, inside the root.
    pub cwd: PathBuf,
    /// Exit codes that are no failure.
    pub success_exit: Vec<i32>,
    /// What happens to processes that it leaves running.
    pub leftovers: Leftovers,
    /// What each of its processes may use, and how many they may be.
    pub limits: Limits,
}

/// What happens to processes that still run when the program itself has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Leftovers {
    /// They are ended; the session log says how many they were.
    #[default]
    Kill,
    /// They are ended, and the model is told.
    Report,
    /// They run on, also after toolq has ended.
    Allow,
}

/// What a program may use; none is no limit of toolq's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Processor time of one process, in whole seconds.
    pub cpu: Option<Duration>,
    /// Address space of one process, in bytes.
    pub memory: Option<u64>,
    /// Descriptors that one process may have open.
    pub files: Option<u64>,
    /// Processes of one call that live at the same time.
    pub processes: Option<u64>,
    /// Bytes of one file that it writes.
    pub file_size: Option<u64>,
}

/// One of [`Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the keys of tools.yaml")]
pub enum Limit {
    Cpu,
    Memory,
    Files,
    Processes,
    FileSize,
}

impl Limit {
    /// The key of tools.yaml.
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

/// One element of `argv`: one argument, or as many as an array has.
#[derive(Debug, Clone)]
pub struct Argument {
    /// Never holds a variable of the environment: arguments are seen by every user of a machine.
    pub template: Template,
    /// A `--` stands before it, so a value that begins with `-` is no option.
    pub after_dashes: bool,
}

/// What a command reads.
#[derive(Debug, Clone)]
pub enum Stdin {
    /// The input as JSON.
    Input,
    /// Nothing.
    None,
    /// A text.
    Template(Template),
}

/// `http`: a request and how its response is read.
#[derive(Debug, Clone)]
pub struct HttpBacking {
    /// GET where the file is silent.
    pub method: HttpMethod,
    /// No value of the input stands before its path, except where it is nothing but one value and `hosts` are given.
    pub url: Template,
    /// Which hosts may be asked, where the input has the whole URL: then none but these, and only at public addresses.
    pub hosts: Option<Vec<HostPattern>>,
    /// Pairs behind `?`.
    pub query: Vec<(String, Template)>,
    /// Names are lower case.
    pub headers: Vec<(String, Template)>,
    /// What is sent.
    pub body: Body,
    /// Which statuses are no failure.
    pub success_status: Vec<StatusRange>,
    /// JSON pointer into the response.
    pub select: Option<String>,
    /// How many redirects are followed, all to the same origin.
    pub redirects: u32,
    /// A proxy; those of the environment are ignored.
    pub proxy: Option<Template>,
}

/// One entry of `hosts`, written as a URL parser writes hosts: lower case, punycode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// This host.
    Exact(String),
    /// `*.` and this: every host that ends in a dot and this.
    Below(String),
}

impl HostPattern {
    /// Whether it has the host of a parsed URL.
    pub fn matches(&self, host: &str) -> bool {
        match self {
            Self::Exact(exact) => host == exact,
            Self::Below(suffix) => host
                .strip_suffix(suffix)
                .is_some_and(|label| label.len() > 1 && label.ends_with('.')),
        }
    }
}

/// As its author could have written it.
impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(host) => f.write_str(host),
            Self::Below(suffix) => write!(f, "*.{suffix}"),
        }
    }
}

/// From and to, both included.
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
    /// As it stands in a request.
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

    /// Whether a body is sent where the file is silent.
    pub fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

/// What a request sends.
#[derive(Debug, Clone)]
pub enum Body {
    /// The input as JSON.
    Input,
    /// Nothing.
    None,
    /// A JSON tree whose strings are templates.
    Json(BodyTemplate),
}

/// A JSON tree with templates in the place of strings; object keys are never templates.
#[derive(Debug, Clone)]
pub enum BodyTemplate {
    /// A number, boolean or null as declared.
    Literal(serde_json::Value),
    /// A string: one that is one placeholder keeps its value's type.
    Template(Template),
    /// An array; a missing optional value leaves its element out.
    Array(Vec<BodyTemplate>),
    /// An object; a missing optional value leaves its pair out.
    Object(Vec<(String, BodyTemplate)>),
}
