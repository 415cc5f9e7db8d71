//! Flags shared by the commands that run calls: session log, progress and events, budgets.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use crate::args::values::parse_endpoint;
use crate::args::values::{ApproveFlag, ProgressFlag};
use crate::output::ColorChoice;
use toolq_core::text::{parse_bytes, parse_duration};
use toolq_engine::BudgetLimits;

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
    /// Print only errors
    #[arg(short, long, global = true, overrides_with = "verbose")]
    pub quiet: bool,
    /// Also print which files are used
    #[arg(short, long, global = true, overrides_with = "quiet")]
    pub verbose: bool,
}

pub(super) const LOG_FILE_HELP: &str = "Session log to append to [env: TOOLQ_LOG_FILE] [default: a new file below $XDG_STATE_HOME/toolq/sessions]";

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
    #[arg(long, value_name = "ask|all|ID,…", value_parser = ApproveFlag::parse)]
    pub approve: Option<ApproveFlag>,
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
#[derive(Debug, Args)]
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
    pub max_calls: Option<u64>,
    /// Stop running calls after this time, and don't start any others
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub time_budget: Option<Duration>,
    /// Stop running calls once tools have produced this much output, and don't start any others
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub max_output_total: Option<u64>,
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
