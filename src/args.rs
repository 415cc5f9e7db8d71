//! Flags and values that several commands have.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ColorChoice, ValueEnum, ValueHint};

use redact::Mask;
use toolq_core::answer::DeclarationFormat;
use toolq_core::os::Clock;
use toolq_core::text::{parse_bytes, parse_duration};
use toolq_core::types::{AnswerForm, Dialect, StreamVendor};
use toolq_engine::{ApprovalPrompt, BudgetLimits};
use toolq_log::memory::Settlement;

/// What became of a call in doubt, and how that is known.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("finding").required(true).args(["done", "not_done"])))]
pub struct FindingFlags {
    /// It did its work; the model gets `--result` from now on
    #[arg(long, requires = "result")]
    pub done: bool,
    /// The result of a call that was done
    #[arg(
        long,
        value_name = "TEXT",
        requires = "done",
        conflicts_with = "not_done",
        allow_hyphen_values = true
    )]
    pub result: Option<String>,
    /// The result is an error
    #[arg(long, requires = "done", conflicts_with = "not_done")]
    pub error: bool,
    /// It did nothing: it runs when it is asked for again
    #[arg(long, conflicts_with = "done")]
    not_done: bool,
    /// How you know; recorded with it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub note: Option<String>,
}

impl FindingFlags {
    /// Returns what is said about the call.
    pub fn settlement(&self, mask: &Mask) -> Settlement {
        let apply = |text: &String| mask.apply(text).into_owned();
        Settlement {
            done: self.result.is_some(),
            result: self.result.as_ref().map(|text| apply(text).into()),
            is_error: self.error,
            by: "person".to_owned(),
            note: self.note.as_ref().map(apply),
            timestamp: Clock::system().now_ms(),
        }
    }
}

/// The inputs of `run` and `plan`.
#[derive(Debug, Args)]
pub struct InputArguments {
    /// Model responses: JSON, JSONL, or streams of server-sent events; `-` is stdin [default: stdin]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Input format [default: auto-detect]
    #[arg(long, value_name = "DIALECT", value_parser = input_format_parser())]
    pub from: Option<InputFormat>,
    /// Include calls that already have a result in the input, and abandoned ones
    #[arg(long)]
    pub all: bool,
    /// Largest JSON document to accept
    #[arg(long = "max-input", value_name = "SIZE", default_value = "256MiB", value_parser = parse_bytes)]
    pub max_document: u64,
    /// Maximum number of calls to run at once; 1 turns parallelism off [default: `concurrency` in tools.yaml]
    #[arg(short, long, value_name = "N", value_parser = parse_jobs)]
    pub jobs: Option<NonZeroUsize>,
}

impl InputArguments {
    /// Returns the path of each input; `-` is stdin.
    pub fn paths(&self) -> Vec<PathBuf> {
        match self.files.as_slice() {
            [] => vec![PathBuf::from("-")],
            files => files.to_vec(),
        }
    }
}

/// The tools file, unless `-c` or `TOOLQ_TOOLS` names another.
pub const DEFAULT_TOOLS_FILE: &str = "tools.yaml";

/// Flags shared by all commands.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct CommonFlags {
    // An empty variable counts as unset, which clap's `env` doesn't support.
    #[arg(
        help = "The file that declares the tools; `-` is stdin [env: TOOLQ_TOOLS] [default: tools.yaml]",
        short = 'c',
        long = "tools",
        value_name = "FILE",
        global = true,
        value_hint = ValueHint::FilePath
    )]
    pub tools: Option<PathBuf>,
    /// When to use colors
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    pub color: ColorChoice,
    /// Print only errors, and what a person has to do
    #[arg(short, long, global = true, overrides_with = "verbose")]
    pub quiet: bool,
    /// Also print which files are used
    #[arg(short, long, global = true, overrides_with = "quiet")]
    pub verbose: bool,
}

pub(crate) const LOG_FILE_HELP: &str = "Session log to append to [env: TOOLQ_LOG_FILE] [default: a new file below $XDG_STATE_HOME/toolq/sessions]";

/// The session log of a run.
#[derive(Debug, Args)]
pub struct LogFlags {
    #[arg(
        id = "log",
        long = "log",
        help = LOG_FILE_HELP,
        value_name = "FILE",
        value_hint = ValueHint::FilePath
    )]
    pub file: Option<PathBuf>,
    /// Keep no session log, and remember nothing
    #[arg(long, conflicts_with = "log")]
    pub no_log: bool,
    /// Run all calls of this input again, or those with these ids, even if the memory has their results
    #[arg(
        long,
        value_name = "ID,…",
        num_args = 0..=1,
        require_equals = true,
        value_delimiter = ',',
        conflicts_with = "no_log"
    )]
    pub new: Option<Vec<String>>,
}

/// Who approves calls that start only after a yes.
#[derive(Debug, Args)]
pub struct ApprovalFlags {
    /// Who approves the calls that need it (`approve` in tools.yaml): you, on the terminal (`ask`), or in advance, `all` or those with
    /// these ids
    #[arg(long, value_name = "ask|all|ID,…", value_parser = parse_approve)]
    pub approve: Option<ApprovalSettings>,
    /// Program that approves calls: it reads each as JSON, and exits with 0 for yes or 1 for no
    #[arg(
        long,
        value_name = "PROGRAM",
        value_hint = ValueHint::ExecutablePath,
        conflicts_with = "approve"
    )]
    pub approve_with: Option<PathBuf>,
}

/// Where to report what happens.
#[derive(Debug, Args)]
pub struct WatchFlags {
    /// Write events as NDJSON to a file descriptor (`fd:3`), or append them to a file
    #[arg(long, value_name = "FILE|fd:N")]
    pub events: Option<String>,
    /// How to show progress
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub progress: ProgressFlag,
    #[command(flatten)]
    pub otlp: OtlpFlags,
}

/// Where to send spans.
#[derive(Debug, Clone, Args)]
pub struct OtlpFlags {
    /// Send OpenTelemetry spans, and metrics of a run, to a receiver of OTLP over HTTP [default: `OTEL_EXPORTER_OTLP_ENDPOINT`,
    /// or `http://localhost:4318`]
    #[arg(
        long,
        value_name = "ENDPOINT",
        num_args = 0..=1,
        value_parser = parse_endpoint,
        value_hint = ValueHint::Url
    )]
    #[expect(clippy::option_option, reason = "no flag, no value, or a value")]
    pub otlp: Option<Option<String>>,
}

/// Limits for all calls of a run together.
#[derive(Debug, Clone, Copy, Args)]
pub struct BudgetFlags {
    /// Start at most this many calls; the others are answered without running
    #[arg(long, value_name = "N")]
    max_calls: Option<u64>,
    /// Stop running calls after this time, and don't start any others
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    time_budget: Option<Duration>,
    /// Stop running calls once tools have produced this much output, and don't start any others
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    max_output_total: Option<u64>,
}

impl From<&BudgetFlags> for BudgetLimits {
    fn from(flags: &BudgetFlags) -> Self {
        Self {
            calls: flags.max_calls,
            time: flags.time_budget,
            output_bytes: flags.max_output_total,
        }
    }
}

/// Parses the value of `--approve`. An id that is one of the two words can't be named.
pub fn parse_approve(text: &str) -> Result<ApprovalSettings, String> {
    match text {
        "ask" => Ok(ApprovalSettings::Terminal),
        "all" => Ok(ApprovalSettings::All),
        ids => {
            let ids: Vec<String> = ids.split(',').map(|id| id.trim().to_owned()).collect();
            if ids.iter().any(String::is_empty) {
                return Err("expected `ask`, `all`, or the ids of calls: `ID,…`".to_owned());
            }
            Ok(ApprovalSettings::Calls(ids))
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressFlag {
    /// Lines if CI is set or the terminal is dumb, a bar on other terminals, else only the summary
    Auto,
    /// A bar, or lines if stderr isn't a terminal that can draw one
    Bar,
    /// A line per event
    Plain,
    /// No progress
    None,
}

/// What `toolq check` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// The problems on stderr, for people
    Text,
    /// One JSON object on stdout
    Json,
    /// Annotations for GitHub Actions on stdout
    Github,
    /// A SARIF log on stdout, for editors and code scanning
    Sarif,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// A timeline for people
    Text,
    /// One JSON object per turn, one per line
    Json,
    /// A self-contained page
    Html,
}

/// What `toolq tools` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolsFormat {
    /// What a model is told about the tools.
    Declarations(DeclarationFormat),
    Table,
    Json,
}

/// Returns the parser of `tools --format`.
pub fn tools_format_parser() -> impl TypedValueParser<Value = ToolsFormat> {
    let declarations = DeclarationFormat::ALL.iter().map(|format| {
        let value = PossibleValue::new(format.name());
        match format {
            DeclarationFormat::Markdown => value.help("A section to paste into a prompt"),
            _ => value,
        }
    });
    let listings = [
        PossibleValue::new("table").help("How each tool runs, for people"),
        PossibleValue::new("json").help("The same for programs"),
    ];
    PossibleValuesParser::new(declarations.into_iter().chain(listings)).map(|name| {
        match name.parse() {
            Ok(format) => ToolsFormat::Declarations(format),
            Err(_) if name == "table" => ToolsFormat::Table,
            Err(_) => ToolsFormat::Json,
        }
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StarterKind {
    /// Three tools: list, read and write files
    Minimal,
    /// The nine tools of a coding agent, confined to the current directory
    Coding,
    /// An API with a key
    Http,
    /// Two MCP servers
    Mcp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AgentLoopLanguage {
    /// A POSIX shell, with curl and jq: `agent.sh`
    Sh,
    /// Python 3, without packages: `agent.py`
    Python,
    /// TypeScript for Node, without packages: `agent.ts`
    Typescript,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ServersFormat {
    /// A table for people
    Text,
    /// One JSON object for programs
    Json,
}

/// What `--from` names: the documents of a dialect, or the streams of a vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFormat {
    Document(Dialect),
    Stream(StreamVendor),
}

impl InputFormat {
    /// Returns the vendor of a stream.
    pub fn stream_vendor(self) -> Option<StreamVendor> {
        match self {
            Self::Document(_) => None,
            Self::Stream(vendor) => Some(vendor),
        }
    }

    /// Returns the dialect of a document.
    pub fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Document(dialect) => Some(dialect),
            Self::Stream(_) => None,
        }
    }

    fn parse(name: &str) -> Option<Self> {
        let mut dialects = Dialect::ALL.iter().copied();
        let dialect = dialects.find(|dialect| dialect.name() == name);
        let vendor = || {
            StreamVendor::ALL
                .iter()
                .copied()
                .find(|vendor| vendor.name() == name)
        };
        dialect
            .map(Self::Document)
            .or_else(|| vendor().map(Self::Stream))
    }
}

/// Returns the parser of `--from`.
pub fn input_format_parser() -> impl TypedValueParser<Value = InputFormat> {
    format_parser(true)
}

/// Returns the parser of `replay --from`. A stream has no results to replay, so the help doesn't offer the formats of streams.
pub fn recording_format_parser() -> impl TypedValueParser<Value = InputFormat> {
    format_parser(false)
}

fn format_parser(shows_streams: bool) -> impl TypedValueParser<Value = InputFormat> {
    let dialects = Dialect::ALL
        .iter()
        .map(|dialect| PossibleValue::new(dialect.name()));
    let streams = StreamVendor::ALL.iter().map(|vendor| {
        let help = match vendor {
            StreamVendor::Anthropic => "A Messages API stream",
            StreamVendor::OpenAi => "A chat completions or responses stream",
            StreamVendor::Gemini => "A stream of Gemini's API",
        };
        let value = PossibleValue::new(vendor.name()).help(help);
        value.hide(!shows_streams)
    });
    let values = dialects.into_iter().chain(streams);
    PossibleValuesParser::new(values)
        .try_map(|name| InputFormat::parse(&name).ok_or("there is no such format"))
}

/// What `toolq call` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CallFormat {
    /// The result as the model reads it
    Text,
    /// The whole conversation of an agent, in the format of its API
    Messages,
    /// The result for programs: with status, error, duration, and attempts; of an agent with turns, tokens, and cost
    Json,
}

/// Returns the parser of `--to`. A single block can only mirror another one.
pub fn answer_form_parser() -> impl TypedValueParser<Value = AnswerForm> {
    let help = |form| match form {
        AnswerForm::Message => "An Anthropic user message",
        AnswerForm::Blocks | AnswerForm::Block => "An array of Anthropic blocks",
        AnswerForm::BlockLines => {
            "One block per line, each printed as soon as it and all before it are ready"
        }
        AnswerForm::OpenAiChat => "An array of `role: tool` messages",
        AnswerForm::OpenAiResponses => "An array of `function_call_output` items",
        AnswerForm::Gemini => "A message with `functionResponse` parts",
        AnswerForm::Bedrock => "A message with `toolResult` blocks",
        AnswerForm::Ollama => "An array of `role: tool` messages that name their tools",
        AnswerForm::Results => {
            "An array of results for programs: with status, error, duration, and attempts"
        }
        AnswerForm::ResultLines => {
            "One such result per line, each printed as soon as it and all before it are ready"
        }
    };
    let forms = || {
        AnswerForm::ALL
            .iter()
            .copied()
            .filter(|form| *form != AnswerForm::Block)
    };
    let values = forms().map(move |form| PossibleValue::new(form.name()).help(help(form)));
    PossibleValuesParser::new(values).try_map(move |name| {
        let mut forms = forms();
        forms
            .find(|form| form.name() == name)
            .ok_or("there is no such form")
    })
}

/// Parses the value of `--http`. Names aren't resolved: what a name means may change.
pub fn parse_http_address(text: &str) -> Result<SocketAddr, &'static str> {
    let text = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    text.parse()
        .map_err(|_| "must be an IP address or `localhost`, and a port, such as 127.0.0.1:8080 or [::1]:8080")
}

/// Parses the value of `--jobs`.
pub fn parse_jobs(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse()
        .map_err(|_| "must be a whole number, 1 or more")
}

/// Parses the time after which a turn goes to another worker. A shorter one would end while a healthy worker renews it.
pub fn parse_ack_wait(text: &str) -> Result<Duration, String> {
    let wait = parse_duration(text)?;
    if wait < Duration::from_secs(1) {
        return Err("must be 1s or longer".to_owned());
    }
    Ok(wait)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

/// Checks the value of `--otlp`, and removes what the path of a signal follows.
///
/// # Errors
/// It isn't an HTTP URL. The text says what to do.
pub(crate) fn parse_endpoint(text: &str) -> Result<String, String> {
    let is_http = text.starts_with("http://") || text.starts_with("https://");
    match url::Url::parse(text) {
        Ok(url) if is_http && url.query().is_none() && url.fragment().is_none() => {
            Ok(text.trim_end_matches('/').to_owned())
        }
        _ => Err(
            "it isn't the URL of a receiver, such as http://localhost:4318; a FILE goes before `--otlp`"
                .to_owned(),
        ),
    }
}

/// Who approves calls that start only after a yes.
#[derive(Debug, Clone, Default)]
pub enum ApprovalSettings {
    /// There is no approver, so such calls don't start.
    #[default]
    Nobody,
    /// A person on the terminal.
    Terminal,
    /// The user who started toolq, for all calls in advance.
    All,
    /// The user who started toolq, for the calls with these ids.
    Calls(Vec<String>),
    Program(PathBuf),
    /// The program at the other end of stdin and stdout.
    Prompt(Arc<dyn ApprovalPrompt>),
}
