//! The values of enumerated options, and what each means to the rest of the program.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::settings::ApprovalSettings;
use toolq_core::answer::DeclarationFormat;
use toolq_core::text::parse_duration;
use toolq_core::types::{AnswerForm, Dialect, StreamVendor};

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
