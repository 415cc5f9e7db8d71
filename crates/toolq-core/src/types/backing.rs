//! What does the work of a tool: a program with its sandbox, or a request. Beside each is its `Invocation`: what a call
//! runs, without the environment, so that it can be shown and logged.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use strum::IntoStaticStr;

use crate::types::answer::OutputRequest;
use crate::types::template::{ArgumentList, PartialJson, PartialTemplate, Template};

/// `command`: a program, its arguments, and its environment.
#[derive(Debug, Clone, Default)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
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
        self.into()
    }
}

/// What a command reads from stdin.
#[derive(Debug, Clone, Default)]
pub enum StdinSource {
    /// The input as JSON.
    Input,
    /// Nothing: stdin is empty.
    #[default]
    None,
    /// The text of a template.
    Template(Template),
}

/// A program that runs another, and its arguments before that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandWrapper {
    /// The program and its arguments: never empty, and without values from an input.
    pub argv: Vec<String>,
    /// The program in `argv` that hands over to a daemon or another host, whose processes don't end with the call.
    pub hands_over_to: Option<String>,
}

/// `sandbox`: what a program, and all that it starts, can reach.
#[derive(Debug, Clone, Default)]
pub struct Sandbox<P = SandboxEntry> {
    /// What it may read and execute.
    pub read: Vec<P>,
    /// What it may read and change.
    pub write: Vec<P>,
    /// What it may reach over the network.
    pub network: SandboxNetwork,
    /// What happens if the system can't do all of this.
    pub missing: MissingProtection,
    /// Whether nothing outside of the root may be changed, wherever `write` and links lead. tools.yaml can't say so: it
    /// protects everything but a copy of the root.
    pub changes_only_root: bool,
}

/// An entry of `read` or `write`. Displayed as in tools.yaml, without the defaults of variables.
#[derive(Debug, Clone, Default, derive_more::Display)]
pub enum SandboxEntry {
    /// The word `root`: the working root.
    #[default]
    #[display("root")]
    Root,
    /// The word `system`: what programs need to start.
    #[display("system")]
    System,
    /// A file or directory. Values in it are inputs named in `paths`.
    #[display("{}", _0.fill(|path| format!("{{{}}}", path.join("."))))]
    Path(Template),
}

/// What a program may reach over the network. Displayed as the ports, or a word.
#[derive(Debug, Clone, Default, PartialEq, Eq, derive_more::Display)]
pub enum SandboxNetwork {
    /// Nothing, not even Unix sockets.
    #[default]
    #[display("none")]
    None,
    /// Everything.
    #[display("all")]
    All,
    /// These ports of any host, as a client over TCP.
    #[display("{_0:?}")]
    Ports(Vec<u16>),
}

/// What happens if the system can't apply all of a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissingProtection {
    /// The program doesn't start.
    #[default]
    Refuse,
    /// It starts with what the system can do, and there is a warning.
    Warn,
}

/// The sandbox of one call, with its values filled in.
pub type SandboxInvocation = Sandbox<SandboxPlace>;

/// An entry of `read` or `write`, with its values filled in. Displayed as tools.yaml would have it.
#[derive(Debug, Clone, derive_more::Display)]
pub enum SandboxPlace {
    /// The working root.
    #[display("root")]
    Root,
    /// What programs need to start.
    #[display("system")]
    System,
    /// A file or directory as declared, relative to the working root.
    Declared(PartialTemplate),
    /// A file or directory that the input names, relative to the program's working directory. It must be in the root.
    FromInput(PartialTemplate),
}

impl<P: fmt::Display> Sandbox<P> {
    /// Describes the sandbox on one line: `read root, system; write {path}; no network`.
    pub fn describe(&self) -> String {
        let network = match &self.network {
            SandboxNetwork::None => "no network".to_owned(),
            SandboxNetwork::All => "any network".to_owned(),
            SandboxNetwork::Ports(ports) => format!("TCP to {}", list(ports)),
        };
        let rest = match self.missing {
            MissingProtection::Refuse => "",
            MissingProtection::Warn => "; as far as the system can",
        };
        let (read, write) = (list(&self.read), list(&self.write));
        format!("read {read}; write {write}; {network}{rest}")
    }
}

fn list(parts: &[impl fmt::Display]) -> String {
    let texts: Vec<String> = parts.iter().map(ToString::to_string).collect();
    if texts.is_empty() {
        return "nothing".to_owned();
    }
    texts.join(", ")
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

impl HttpBacking {
    /// Returns all templates that are filled in for a request, in the order of the fields.
    pub fn templates(&self) -> Vec<&Template> {
        let pairs = self.query.iter().chain(&self.headers);
        let body = match &self.body {
            RequestBody::Json(body) => body.templates(),
            RequestBody::Input | RequestBody::None => Vec::new(),
        };
        std::iter::once(&self.url)
            .chain(pairs.map(|(_, template)| template))
            .chain(body)
            .chain(&self.proxy)
            .collect()
    }

    /// Whether the request sends a form.
    pub(crate) fn sends_form(&self) -> bool {
        self.headers
            .iter()
            .find(|(name, _)| name == "content-type")
            .and_then(|(_, template)| template.sole_text())
            .unwrap_or_default()
            .split(';')
            .next()
            .is_some_and(|name| name.trim().eq_ignore_ascii_case(FORM_MEDIA_TYPE))
    }
}

/// One entry of `hosts`, normalized like a parsed URL: lowercase and punycode. Displayed as tools.yaml would have it.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
pub enum HostPattern {
    /// Exactly this host.
    Exact(String),
    /// `*.` followed by this suffix: every subdomain of it, but not the suffix itself.
    #[display("*.{_0}")]
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

/// First and last status, both inclusive.
pub type StatusRange = RangeInclusive<u16>;

/// The methods of RFC 9110 and RFC 5789 that a tool may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema, IntoStaticStr)]
#[strum(serialize_all = "UPPERCASE")]
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
        self.into()
    }

    /// Whether requests with this method have a body by default.
    pub fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

/// The media type of forms: `name=value&other=value`.
pub const FORM_MEDIA_TYPE: &str = "application/x-www-form-urlencoded";

/// The body of a request.
#[derive(Debug, Clone)]
pub enum RequestBody {
    /// The input as JSON.
    Input,
    /// Nothing.
    None,
    /// A JSON tree whose strings are templates. What is sent also depends on the content type: an object may become a form,
    /// and a string is sent as it is where that isn't JSON.
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
            Self::Object(pairs) => pairs
                .iter()
                .map(|(_, value)| value)
                .flat_map(Self::templates)
                .collect(),
        }
    }
}

/// What a call runs: its tool's templates, filled with its input. Environment variables are still names, so an
/// invocation can be shown and recorded without revealing a secret. Long turns hold one for each call, so it is small.
#[derive(Debug, Clone)]
pub enum Invocation {
    /// A program to start.
    Command(CommandInvocation),
    /// A request to send.
    Http(Box<HttpInvocation>),
    /// An agent to hand a task to.
    Agent(AgentInvocation),
    /// A tool of a server to call.
    Mcp(Box<McpInvocation>),
    /// The answer that completes a session.
    Completion(String),
    /// An output of an earlier call to read.
    ReadOutput(Box<OutputRequest>),
    /// A function of the process that embeds toolq. It gets the input.
    Host,
}

/// A program to start.
#[derive(Debug, Clone)]
pub struct CommandInvocation {
    /// The program and its arguments.
    pub argv: ArgumentList,
    /// What the program reads from stdin.
    pub stdin: StdinContent,
    /// Declared environment variables.
    pub env: Box<[(String, PartialTemplate)]>,
    /// What the program can reach, if it is confined.
    pub sandbox: Option<Box<SandboxInvocation>>,
}

/// What a command reads from stdin.
#[derive(Debug, Clone)]
pub enum StdinContent {
    /// The call's input as JSON.
    Input,
    /// Nothing: stdin is empty.
    None,
    /// A text.
    Text(Box<str>),
}

/// A request to send.
#[derive(Debug, Clone)]
pub struct HttpInvocation {
    /// Input values are already percent-encoded.
    pub url: PartialTemplate,
    /// Not encoded yet.
    pub query: Vec<(String, PartialTemplate)>,
    /// Header names are lowercase.
    pub headers: Vec<(String, PartialTemplate)>,
    /// The body to send.
    pub body: Option<PartialJson>,
}

/// A tool of a server to call.
#[derive(Debug, Clone)]
pub struct McpInvocation {
    /// The name of the server in tools.yaml.
    pub server: String,
    /// The tool's name there.
    pub tool: Arc<str>,
    /// The arguments, which are an object.
    pub arguments: PartialJson,
}

/// A task for an agent.
#[derive(Debug, Clone)]
pub struct AgentInvocation {
    /// The task, or `None` if it is the input.
    pub prompt: Option<PartialTemplate>,
}

impl CommandInvocation {
    /// Returns the path of the program to start. A relative path that contains a slash is resolved against `dir`.
    pub fn program_path(&self, dir: &std::path::Path) -> PathBuf {
        let program = self.argv.program();
        if program.contains('/') {
            dir.join(program)
        } else {
            PathBuf::from(program)
        }
    }
}
