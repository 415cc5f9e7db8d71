//! What was typed. What it means is decided in `context` and in the commands.

mod log;
mod shared;
mod values;

pub(crate) use log::{
    Log, LogCost, LogFiles, LogFormat, LogPrune, LogResolve, LogShow, LogStats, LogVerb,
};
pub(crate) use shared::{LogFlags, WatchFlags};
pub(crate) use values::{FromDialect, Ids, PlanFormat, Progress, ToAnswer, ToolsFormat};

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};

use crate::args::shared::BudgetFlags;
use crate::args::values::{ExecuteFlag, ToForm};
use crate::output::Color;
use crate::replay::Shard;
use toolq_core::text::parse_bytes;
use toolq_core::types::Ignored;

/// Answer a language model's tool calls.
///
/// toolq reads the `tool_use` blocks of a model's answer, decides which of them may run together, runs them as
/// tools.yaml declares, and writes one `tool_result` for each, in the order in which they were asked.
#[derive(Debug, Parser)]
#[command(name = "toolq", version, propagate_version = true, max_term_width = 100, after_help = after_help())]
pub struct Arguments {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

pub const EXAMPLES: &str = "\
curl … /v1/messages | toolq run     answer the tool calls of one model response
toolq plan response.json            show what would run, in which batches, and why
toolq replay transcripts/           does yesterday's recording still hold with today's tools?
toolq check                         every problem of tools.yaml, placed
toolq log show                      what the latest session asked, ran and answered";

pub const EXIT_CODES: &str = "\
0  every call was answered; an error result is an answer
1  run --fail-on-error: an error result; replay: a call differs; check, plan --strict: problems found
2  usage, tools.yaml or input is wrong; nothing ran
3  a tool was paused, a budget used up, a call is in doubt, or the input broke off; every call is still answered
4  the session log can't be used
5  run: the model asked for nothing
74 results could not be written
129, 130, 131, 143  hung up, interrupted, quit, terminated; every call is still answered";

fn after_help() -> String {
    let indented = |lines: &str| lines.replace('\n', "\n  ");
    let (examples, codes) = (indented(EXAMPLES), indented(EXIT_CODES));
    format!("Examples:\n  {examples}\n\nExit codes:\n  {codes}")
}

/// Where the tools are declared, where nothing else is said.
pub const TOOLS_FILE: &str = "tools.yaml";

/// Flags of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Common {
    /// The file that declares the tools
    #[arg(short = 'c', long = "tools", value_name = "FILE", env = "TOOLQ_TOOLS", default_value = TOOLS_FILE, global = true, value_hint = ValueHint::FilePath)]
    pub tools: PathBuf,
    /// When to use colours
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    pub color: Color,
    /// Say nothing but errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Say more: which files are used
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub verbose: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Answer the calls
    Run(Box<Run>),
    /// Show what would run, in which batches, and why; runs nothing
    Plan(Plan),
    /// Run one agent on an input, to its answer
    Agent(Box<Agent>),
    /// Hold recordings against today's tools: are inputs still valid, are results still the same
    Replay(Box<Replay>),
    /// Look for problems in tools.yaml
    Check(Check),
    /// Print the declarations for a model
    Tools(Tools),
    /// Read session logs, and settle what is in doubt
    Log(Log),
    /// Print a generated file: a schema, completions, the man page
    Generate(Generate),
    /// Write a tools.yaml to start from
    Init(Init),
}

/// Where calls come from, for `run` and `plan`.
#[derive(Debug, Args)]
pub struct Input {
    /// Answers of a model: JSON, JSONL, or streams of server-sent events; `-` or nothing is stdin
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// The form of the input, where it should not be recognised
    #[arg(long, value_name = "DIALECT")]
    pub from: Option<FromDialect>,
    /// Take calls that already have a result in the input, too
    #[arg(long)]
    pub all: bool,
    /// The largest JSON document that is read
    #[arg(long = "max-input", value_name = "SIZE", default_value = "256MiB", value_parser = parse_bytes)]
    pub max_document: u64,
    /// Calls that run at once; 1 turns parallelism off [default: `concurrency` of tools.yaml]
    #[arg(short, long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<NonZeroUsize>,
}

/// A number of calls.
fn jobs(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "it is a whole number from 1 on")
}

#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    pub input: Input,
    /// Answer JSON lines one by one as they come, one line for each, to serve as a co-process
    #[arg(long)]
    pub follow: bool,
    /// The form of the results, where it should not mirror the input
    #[arg(long, value_name = "FORM")]
    pub to: Option<ToForm>,
    #[command(flatten)]
    pub log: LogFlags,
    #[command(flatten)]
    pub watch: WatchFlags,
    /// Exit 1 if a result is an error
    #[arg(long)]
    pub fail_on_error: bool,
    #[command(flatten)]
    pub budgets: BudgetFlags,
}

#[derive(Debug, Args)]
pub struct Agent {
    /// The tool with an `agent`. Its input is read from stdin, as JSON
    pub name: String,
    /// What is printed
    #[arg(long, value_name = "WHAT", default_value = "text")]
    pub to: ToAnswer,
    /// Calls that run at once; 1 turns parallelism off [default: `concurrency` of tools.yaml]
    #[arg(short, long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub log: LogFlags,
    #[command(flatten)]
    pub watch: WatchFlags,
    #[command(flatten)]
    pub budgets: BudgetFlags,
}

#[derive(Debug, Args)]
pub struct Plan {
    #[command(flatten)]
    pub input: Input,
    /// How to show the plan
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: PlanFormat,
    /// Ask tools that describe themselves what they take; this runs their `describe`, and nothing else
    #[arg(long)]
    pub describe: bool,
    /// Exit 1 if a call is rejected
    #[arg(long)]
    pub strict: bool,
}

#[derive(Debug, Args)]
pub struct Replay {
    /// Recordings: files, folders with all below them, globs; `-` is stdin
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Which calls really run; the results of the others are served from the recording
    #[arg(long, value_name = "WHICH", default_value = "read")]
    pub execute: ExecuteFlag,
    /// A part of every result that may differ: `/pointer`, or `//name` at any depth
    #[arg(long, value_name = "PART", value_parser = Ignored::parse)]
    pub ignore: Vec<Ignored>,
    /// Whether ids of calls inside of results may be others than recorded, one for one
    #[arg(long, value_name = "HOW", default_value = "rename")]
    pub ids: Ids,
    /// Numbers may differ by so much, or by such a part of the larger one, for example 1e-9
    #[arg(long, value_name = "NUMBER", value_parser = tolerance)]
    pub tolerance: Option<f64>,
    /// Write a report as JSON; `-` is stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
    /// Write a JUnit report: a suite is a recording, a case is a call
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub junit: Option<PathBuf>,
    /// Write a summary as Markdown, for the page of a CI run
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub markdown: Option<PathBuf>,
    /// Write new results into the recordings
    #[arg(long)]
    pub update: bool,
    /// Replay the K-th of N parts of the sorted recordings
    #[arg(long, value_name = "K/N")]
    pub shard: Option<Shard>,
    /// End with the first turn in which a call differs
    #[arg(long)]
    pub fail_fast: bool,
    /// The form of the recordings, where it should not be recognised
    #[arg(long, value_name = "DIALECT")]
    pub from: Option<FromDialect>,
    /// The largest JSON document that is read
    #[arg(long = "max-input", value_name = "SIZE", default_value = "256MiB", value_parser = parse_bytes)]
    pub max_document: u64,
    /// Calls that run at once; 1 turns parallelism off [default: `concurrency` of tools.yaml]
    #[arg(short, long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<NonZeroUsize>,
    /// Keep a session log of the calls that run, written behind what the file has already
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub log: Option<PathBuf>,
    #[command(flatten)]
    pub budgets: BudgetFlags,
}

/// How far numbers may be apart.
fn tolerance(text: &str) -> Result<f64, &'static str> {
    let tolerance = text.parse().ok();
    tolerance
        .filter(|tolerance: &f64| tolerance.is_finite() && *tolerance >= 0.0)
        .ok_or("it is a number from 0 on, such as 1e-9")
}

#[derive(Debug, Args)]
pub struct Check {
    /// Exit 1 for warnings, too
    #[arg(long)]
    pub strict: bool,
}

#[derive(Debug, Args)]
pub struct Tools {
    /// The form of the declarations
    #[arg(long, value_name = "FORMAT", default_value = "anthropic")]
    pub format: ToolsFormat,
}

#[derive(Debug, Args)]
pub struct Generate {
    #[command(subcommand)]
    pub what: Generated,
}

#[derive(Debug, Subcommand)]
pub enum Generated {
    /// The JSON Schema of tools.yaml
    Schema {
        /// That of a record of the session log
        #[arg(long)]
        log: bool,
    },
    /// Completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// The man page
    Man,
}

#[derive(Debug, Args)]
pub struct Init {
    /// Declarations to start from: a request with `tools`, an array of them, or an MCP `tools/list` answer
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub from: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
}
