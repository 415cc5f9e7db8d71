//! The keys of the `command` and `http` backings.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Number, Value};

use crate::tools_file::keys::sandbox::SandboxForm;
use crate::tools_file::keys::start_limits::RateForm;
use crate::tools_file::keys::tool::Defaults;
use crate::tools_file::keys::values::{DurationText, IdleText, SizeText, StatusRangeText};
use crate::tools_file::spanned::{Field, SpannedTable};
use crate::types::{HintPolicy, HttpMethod, Leftovers, ResultParts, ServerProtocol, StderrUse};

/// A program and its arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    rename = "$kind",
    rename_all = "snake_case",
    expecting = "a list of the program and its arguments, such as `[cat, --, \"{path}\"]`, or a table with `argv`"
)]
#[schemars(rename = "Command", untagged)]
pub enum CommandForm {
    /// The program and its arguments.
    List(Argv),
    /// A table with `argv` and other keys.
    Table(Box<CommandFile>),
}

/// The program and its arguments. Each is a template; no shell is involved.
pub type Argv = Vec<Field<String>>;

/// A program and how to run it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["argv"]))]
pub struct CommandFile {
    /// The program and its arguments. Each is a template; no shell is involved.
    pub argv: Field<Argv>,
    /// Standard input: `input` (the input as JSON), `none`, or a template. Default: `input` if no argument or variable
    /// contains a value from the input, otherwise `none`.
    pub stdin: Field<String>,
    /// Names of inputs that may begin with `-` as an argument of their own. All others are refused then.
    pub dashes: Field<Vec<Field<String>>>,
    /// Environment variables: names with templates for their values.
    pub env: Field<SpannedTable<String>>,
    /// Variables to pass from toolq's own environment, in addition to PATH, HOME, LANG, LC_*, TMPDIR and TZ.
    pub pass_env: Field<Vec<Field<String>>>,
    /// Working directory, inside the root. Default: the root.
    pub cwd: Field<String>,
    /// Exit codes that count as success. Default: 0.
    #[schemars(with = "Field<Vec<u8>>")]
    pub success_exit: Field<Vec<Field<i32>>>,
    /// When the model reads the end of stderr: `on_failure` (the default; also after a success without other output),
    /// `always` (behind an output that is text), or `never`.
    pub stderr: Field<StderrUse>,
    /// What to do with processes that are still running after the program exits: `kill` (the default), `report` (kill
    /// them and tell the model), or `allow`.
    pub leftovers: Field<Leftovers>,
    /// Resource limits. Default: whatever the system allows.
    pub limits: Field<LimitsFile>,
}

/// Resource limits of a program.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct LimitsFile {
    /// CPU time of one process, in whole seconds.
    pub cpu: Field<DurationText>,
    /// Address space of one process.
    pub memory: Field<SizeText>,
    /// Open file descriptors of one process, including the four that it starts with.
    #[schemars(range(min = 4))]
    pub files: Field<u64>,
    /// Processes that one call may have at the same time.
    #[schemars(range(min = 1))]
    pub processes: Field<u64>,
    /// Size of each file that it writes.
    pub file_size: Field<SizeText>,
}

/// An HTTP request and how to read its response.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["url"]))]
pub struct HttpFile {
    /// HTTP method. Default: GET.
    pub method: Field<HttpMethod>,
    /// URL template. Values from the input may only appear after the host and are percent-encoded. Or a single value
    /// that is the whole URL, which requires `hosts`.
    pub url: Field<String>,
    /// Hosts that a URL from the input may name: `api.example.com`, or `*.example.com` for its subdomains. An empty
    /// list allows no host. Addresses that aren't public are always refused.
    pub hosts: Field<Vec<Field<String>>>,
    /// Query parameters: names with templates for their values.
    pub query: Field<SpannedTable<String>>,
    /// Headers: names with templates for their values.
    pub headers: Field<SpannedTable<String>>,
    /// Request body: `input` (the default for methods with a body), `none`, or JSON with templates. A text is sent as it is
    /// where `content-type` isn't JSON.
    #[schemars(with = "Field<Value>")]
    pub body: Field<BodyFile>,
    /// Request body as a form: names with templates for their values.
    pub form: Field<SpannedTable<String>>,
    /// Statuses that count as success. Default: 200-299.
    pub success_status: Field<Vec<Field<StatusRangeText>>>,
    /// JSON pointer into the response. Only that part becomes the result.
    pub select: Field<String>,
    /// Maximum number of redirects to follow, all to the same origin. Default: 0.
    #[schemars(range(max = 10))]
    pub redirects: Field<u32>,
    /// URL of a proxy. Proxy variables in the environment are ignored.
    pub proxy: Field<String>,
}

/// A program that serves tools by the Model Context Protocol (MCP).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("oneOf" = [{"required": ["command"]}, {"required": ["url"]}]))]
pub struct ServerFile {
    /// Program to run: a list of the program and its arguments, or a table. It starts at the first call of one of its tools,
    /// serves all of them, and ends with the run.
    pub command: Field<CommandForm>,
    /// What the program, and all that it starts, can reach. Default: what the user who runs toolq can.
    pub sandbox: Field<SandboxForm>,
    /// What runs the program: a program and its arguments before that. An empty list turns that of `defaults` off.
    pub wrapper: Field<Argv>,
    /// Address of a server that is running already, for streamable HTTP: `https://host/mcp`. A template without values
    /// from the input.
    pub url: Field<String>,
    /// Headers of every request to `url`: names with templates for their values.
    pub headers: Field<SpannedTable<String>>,
    /// How long the server may take until it is ready for calls. Default: 30s.
    pub startup: Field<DurationText>,
    /// For how long the server may be without a call before its program, or its session, is ended. The next call begins
    /// another. Default: `never`.
    pub idle: Field<IdleText>,
    /// How often the program is started again within 10 minutes after it has ended by itself. Default: 3.
    pub restarts: Field<u32>,
    /// Revision of the protocol to speak. Default: `auto`.
    pub protocol: Field<ServerProtocol>,
    /// What comes before the server's own names of the tools. Default: the server's name and `_`.
    pub prefix: Field<String>,
    /// Globs for the server's own names of the tools that may be called: `*`, `?`, `[a-z]`, `{get,list}_*`.
    /// Default: all.
    pub tools: Field<Vec<Field<String>>>,
    /// Whether what the server says about the effects of its tools counts. Default: `locked`.
    pub hints: Field<HintPolicy>,
    /// Which parts of its results the model reads. Default: `content`.
    pub result: Field<ResultParts>,
    /// Maximum number of calls of all its tools that run at once.
    #[schemars(range(min = 1))]
    pub max_parallel: Field<u32>,
    /// How often calls of its tools start: `10/s`, `600/m`, `100/h`, or `{per: 10/s, burst: 20}`.
    pub rate: Field<RateForm>,
    /// Defaults for its tools, before those of the file.
    pub defaults: Field<Defaults>,
}

/// A tool of a server.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["server"]))]
pub struct McpFile {
    /// Name of the server, a key of `servers`.
    pub server: Field<String>,
    /// Name of the tool there. Default: the name of this tool.
    pub tool: Field<String>,
    /// Arguments to send: JSON with templates. Default: the input.
    #[schemars(with = "Field<Value>")]
    pub arguments: Field<BodyFile>,
    /// Which parts of the result the model reads. Default: what the server says.
    pub result: Field<ResultParts>,
}

/// JSON whose strings are templates.
#[derive(Debug, Deserialize)]
#[serde(rename = "$kind", rename_all = "snake_case", expecting = "JSON")]
pub enum BodyFile {
    Null(()),
    Boolean(bool),
    Number(Number),
    Text(String),
    List(Vec<Field<BodyFile>>),
    Table(SpannedTable<BodyFile>),
}
