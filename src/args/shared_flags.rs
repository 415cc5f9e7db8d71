//! Flags shared by the commands that run calls: session log, progress and events, budgets.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ColorChoice, ValueHint};

use crate::args::values::{
    InputFormat, ProgressFlag, input_format_parser, parse_approve, parse_endpoint, parse_jobs,
};
use crate::settings::ApprovalSettings;
use redact::Mask;
use toolq_core::os::Clock;
use toolq_core::text::{parse_bytes, parse_duration};
use toolq_engine::BudgetLimits;
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
