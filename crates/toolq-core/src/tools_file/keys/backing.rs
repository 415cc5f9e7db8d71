//! What does a tool's work: `command` and `http`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Number, Value};

use crate::tools_file::keys::values::{Bytes, DurationText, Statuses};
use crate::tools_file::spanned::{Setting, Table};
use crate::types::{HttpMethod, Leftovers};

/// A program and its arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    rename = "$kind",
    rename_all = "snake_case",
    expecting = "a list of the program and its arguments such as `[cat, --, \"{path}\"]`, or a table with `argv`"
)]
#[schemars(rename = "Command", untagged)]
pub enum CommandForm {
    /// Just the list.
    List(Argv),
    /// Everything by its name.
    Table(Box<CommandFile>),
}

/// The program and its arguments, each a template; no shell is involved.
pub type Argv = Vec<Setting<String>>;

/// A program and what it is given.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["argv"]))]
pub struct CommandFile {
    /// The program and its arguments, each a template; no shell is involved.
    pub argv: Setting<Argv>,
    /// What it reads: `input` (the default: the input as JSON), `none`, or a template.
    pub stdin: Setting<String>,
    /// Environment variables: templates by name.
    pub env: Setting<Table<String>>,
    /// Variables that pass from toolq's own environment, beside PATH, HOME, LANG, LC_*, TMPDIR and TZ.
    pub pass_env: Setting<Vec<Setting<String>>>,
    /// Where it runs, inside the root. Default: the root.
    pub cwd: Setting<String>,
    /// Exit codes that are no failure. Default: 0.
    #[schemars(with = "Setting<Vec<u8>>")]
    pub success_exit: Setting<Vec<Setting<i32>>>,
    /// What happens to processes that it leaves running when it ends: `kill` (the default), `report` (the same, and the
    /// model is told), or `allow`.
    pub leftovers: Setting<Leftovers>,
    /// What it may use. Default: whatever the system allows.
    pub limits: Setting<LimitsFile>,
}

/// What a program may use.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct LimitsFile {
    /// Processor time of one process, in whole seconds.
    pub cpu: Setting<DurationText>,
    /// Address space of one process.
    pub memory: Setting<Bytes>,
    /// Descriptors that one process has open, the four that it is given among them.
    #[schemars(range(min = 4))]
    pub files: Setting<u64>,
    /// Processes of one call at the same time.
    #[schemars(range(min = 1))]
    pub processes: Setting<u64>,
    /// One file that it writes.
    pub file_size: Setting<Bytes>,
}

/// A request and how its response is read.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["url"]))]
pub struct HttpFile {
    /// Default: GET.
    pub method: Setting<HttpMethod>,
    /// A template; values of the input stand behind the host only and are percent-encoded. Or one value that is the
    /// whole URL; then `hosts` are needed.
    pub url: Setting<String>,
    /// Which hosts a URL of the input may name: `api.example.com`, or `*.example.com` for those below it. An empty list
    /// allows none. Addresses that are not public are refused whatever the name.
    pub hosts: Setting<Vec<Setting<String>>>,
    /// Pairs behind `?`: templates by name.
    pub query: Setting<Table<String>>,
    /// Templates by name.
    pub headers: Setting<Table<String>>,
    /// What is sent: `input` (the default where the method has a body), `none`, or JSON with templates.
    #[schemars(with = "Setting<Value>")]
    pub body: Setting<BodyFile>,
    /// Which statuses are no failure. Default: 200-299.
    pub success_status: Setting<Vec<Setting<Statuses>>>,
    /// JSON pointer into the response: only that part is the result.
    pub select: Setting<String>,
    /// How many redirects are followed, all to the same origin. Default: 0.
    #[schemars(range(max = 10))]
    pub redirects: Setting<u32>,
    /// The proxy; those of the environment are ignored.
    pub proxy: Setting<String>,
}

/// JSON with templates in the place of strings.
#[derive(Debug, Deserialize)]
#[serde(rename = "$kind", rename_all = "snake_case", expecting = "JSON")]
pub enum BodyFile {
    Null(()),
    Boolean(bool),
    Number(Number),
    Text(String),
    List(Vec<Setting<BodyFile>>),
    Table(Table<BodyFile>),
}
