//! `toolq log` as it was typed.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use toolq_core::text::parse_age;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Log {
    #[command(subcommand)]
    pub verb: LogVerb,
}

const EXAMPLES: &str = "\
Examples:
  toolq log show                      what the latest session asked, ran and answered
  toolq log show -f session.jsonl     the same of a run that goes on
  toolq log stats logs/*.jsonl        runs, failures and durations of each tool
  toolq log cost                      tokens, turns and dollars of each agent
  toolq log verify session.jsonl      whether every line is as it was written
  toolq log prune --older 30d         remove sessions that nobody needs any more";

#[derive(Debug, Subcommand)]
pub enum LogVerb {
    /// What was asked, ran and was answered, turn by turn
    Show(LogShow),
    /// Runs, successes, failures and durations of each tool, over all logs
    Stats(LogStats),
    /// Tokens, turns and estimated cost of each agent, by the `prices` of tools.yaml, over all logs
    Cost(LogCost),
    /// Whether every line is as it was written; exit 4 where one is not
    Verify(LogFiles),
    /// Say what became of a call in doubt, so that `run --resume` knows
    #[command(after_help = RESOLVE_EXAMPLES)]
    Resolve(LogResolve),
    /// Remove old sessions of the default folder, with all that stands beside them
    Prune(LogPrune),
}

/// The logs that are read.
#[derive(Debug, Args)]
pub struct LogFiles {
    /// Session logs [default: the latest below `$XDG_STATE_HOME/toolq/sessions`]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct LogShow {
    #[command(flatten)]
    pub from: LogFiles,
    /// Go on while the log grows, until its session ends or its process is gone
    #[arg(short, long)]
    pub follow: bool,
    /// How to show it
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: LogFormat,
    /// Only calls that failed, did not run, or have no result; in JSON, their results
    #[arg(long)]
    pub errors: bool,
    /// Only calls of this tool; may be given again
    #[arg(long, value_name = "NAME")]
    pub tool: Vec<String>,
}

#[derive(Debug, Args)]
pub struct LogStats {
    #[command(flatten)]
    pub from: LogFiles,
    /// How to show them
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: LogFormat,
}

#[derive(Debug, Args)]
pub struct LogCost {
    #[command(flatten)]
    pub from: LogFiles,
    /// How to show it
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: LogFormat,
}

#[derive(Debug, Args)]
pub struct LogPrune {
    /// Sessions whose last record is older than this
    #[arg(long, value_name = "DURATION", value_parser = parse_age)]
    pub older: Duration,
    /// Say what would be removed, and remove nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Remove sessions without an end, too: they could be resumed
    #[arg(long)]
    pub unfinished: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

const RESOLVE_EXAMPLES: &str = "\
Examples:
  toolq log resolve toolu_01 session.jsonl --done --result 'paid, receipt 4711'
  toolq log resolve toolu_01 session.jsonl --done --result 'refused by the bank' --error
  toolq log resolve toolu_01 session.jsonl --not-done --note 'the bank knows of none'";

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("finding").required(true).args(["done", "not_done"])))]
pub struct LogResolve {
    /// The call: its `tool_use_id`, or the `id` of its `tool_call` record
    #[arg(value_name = "ID")]
    pub id: String,
    /// The session log [default: the latest session]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// It did its work; `--result` is what the model reads of it from now on
    #[arg(long, requires = "result")]
    pub done: bool,
    /// The result of a call that is done
    #[arg(
        long,
        value_name = "TEXT",
        requires = "done",
        conflicts_with = "not_done",
        allow_hyphen_values = true
    )]
    pub result: Option<String>,
    /// That result is an error
    #[arg(long, requires = "done", conflicts_with = "not_done")]
    pub error: bool,
    /// It did nothing: the next `run --resume` runs it
    #[arg(long, conflicts_with = "done")]
    pub not_done: bool,
    /// How you know; kept in the log
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub note: Option<String>,
}
