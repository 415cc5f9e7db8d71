//! `toolq log`, one module per verb; `cost` is in that of `stats`. `log_files` finds and opens the files; `log_view` renders their records.

mod export;
mod list;
pub(crate) mod log_files;
mod prune;
pub(crate) mod resolve;
mod show;
mod stats;
mod verify;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use crate::args::{FindingFlags, LogFormat};
use crate::context::CommandContext;
use crate::output::{CommandError, Exit};
use toolq_core::text::parse_age;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct LogArguments {
    #[command(subcommand)]
    pub command: LogCommand,
}

const EXAMPLES: &str = "\
Examples:
  toolq log list                      list the latest sessions
  toolq log show                      show the calls of the latest session and their results
  toolq log show -f session.jsonl     the same, following a run in progress
  toolq log show --id toolu_07        show all that the log has of a call
  toolq log stats logs/*.jsonl        count runs and failures of each tool, with durations
  toolq log cost                      show tokens, turns, and dollars of each agent
  toolq log export --format html -o page.html
                                      draw the calls of the latest session as a page
  toolq log verify session.jsonl      check that no line was changed
  toolq log prune --older 30d         delete the contents of sessions older than 30 days";

#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// List the sessions in the default directory, the latest first
    List(LogListArguments),
    /// Show the calls and their results, turn by turn
    Show(LogShowArguments),
    /// Show runs, successes, failures, and durations of each tool: of the latest session, or over all given logs
    Stats(LogStatsArguments),
    /// Show tokens, turns, and estimated cost (by `prices` in tools.yaml) of each agent, over all given logs
    Cost(LogCostArguments),
    /// Print the calls in another form: as a page, as a trace, or as a recording in the form of an API
    Export(LogExportArguments),
    /// Check that every line is intact; exit 4 if one isn't
    Verify(LogFileArguments),
    /// Record what became of a call in doubt
    #[command(after_help = RESOLVE_EXAMPLES)]
    Resolve(LogResolveArguments),
    /// Delete the contents of old sessions in the default directory, but keep which calls were done
    Prune(LogPruneArguments),
}

/// The logs to read.
#[derive(Debug, Args)]
pub(crate) struct LogFileArguments {
    /// Session logs, or ids of sessions (`toolq log list`); `-` is stdin [default: the latest below `$XDG_STATE_HOME/toolq/sessions`]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct LogListArguments {
    /// How many sessions to list
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        default_value_t = 20,
        conflicts_with = "all"
    )]
    pub limit: usize,
    /// List all sessions
    #[arg(long)]
    pub all: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: LogFormat,
}

#[derive(Debug, Args)]
pub(crate) struct LogShowArguments {
    #[command(flatten)]
    pub logs: LogFileArguments,
    /// Keep showing new records until the session ends or its process is gone
    #[arg(short, long)]
    pub follow: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: LogFormat,
    /// Only calls that failed, did not run, or have no result; in JSON, only their results
    #[arg(long)]
    pub errors: bool,
    /// Only this call, with all that the log has of it: its `tool_use_id`, or the `id` of its `tool_call` record
    #[arg(long, value_name = "ID", conflicts_with_all = ["follow", "errors", "tool", "full"])]
    pub id: Option<String>,
    /// Whole inputs and results
    #[arg(long)]
    pub full: bool,
    /// Only calls of this tool; can be repeated
    #[arg(long, value_name = "NAME")]
    pub tool: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LogExportArguments {
    #[command(flatten)]
    pub logs: LogFileArguments,
    /// What to make of the log
    #[arg(long, value_name = "FORMAT", default_value = "messages")]
    pub format: ExportFormat,
    /// Where to write it [default: stdout]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Write the page again while the log grows, until its session ends; the page reloads itself
    #[arg(short, long, requires = "output")]
    pub follow: bool,
}

/// What a log is exported as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A page with a bar for each call
    Html,
    /// Trace events, for Perfetto and `chrome://tracing`
    Trace,
    /// Messages with `tool_use` and `tool_result` blocks (Anthropic)
    Messages,
    /// Messages with `tool_calls`, and messages with the role `tool` (OpenAI chat completions)
    OpenaiChat,
    /// Items `function_call` and `function_call_output` (OpenAI responses)
    OpenaiResponses,
}

#[derive(Debug, Args)]
pub(crate) struct LogStatsArguments {
    #[command(flatten)]
    pub logs: LogFileArguments,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: LogFormat,
}

#[derive(Debug, Args)]
pub(crate) struct LogCostArguments {
    #[command(flatten)]
    pub logs: LogFileArguments,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: LogFormat,
}

#[derive(Debug, Args)]
pub(crate) struct LogPruneArguments {
    /// Prune sessions whose last record is older than this
    #[arg(long, value_name = "DURATION", value_parser = parse_age)]
    pub older: Duration,
    /// List what would be pruned, without doing it
    #[arg(short = 'n', long)]
    dry_run: bool,
}

const RESOLVE_EXAMPLES: &str = "\
Examples:
  toolq log resolve toolu_01 --done --result 'paid, receipt 4711'
  toolq log resolve toolu_01 --done --result 'refused by the bank' --error
  toolq log resolve toolu_01 session.jsonl --not-done --note 'the bank has no record of it'";

/// clap's own usage line would be wider than a narrow terminal.
const RESOLVE_USAGE: &str = "\
toolq log resolve <ID> [FILE] --done --result <TEXT>
       toolq log resolve <ID> [FILE] --not-done";

#[derive(Debug, Args)]
#[command(override_usage = RESOLVE_USAGE)]
pub(crate) struct LogResolveArguments {
    /// The call: its `tool_use_id`, or the digits that the run named
    #[arg(value_name = "ID")]
    pub id: String,
    /// The log of the run.
    #[arg(
        help = "The log of the run, if that had `--log` [env: TOOLQ_LOG_FILE] [default: the memory of all runs without `--log`]",
        value_name = "FILE",
        value_hint = ValueHint::FilePath
    )]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub finding: FindingFlags,
}

/// Runs a verb of `toolq log`.
///
/// # Errors
/// A log can't be read, or stdout can't be written.
pub fn run_log_command(
    arguments: &LogArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    match &arguments.command {
        LogCommand::List(arguments) => list::list_sessions(arguments, context),
        LogCommand::Show(arguments) => show::show_logs(arguments, context),
        LogCommand::Stats(arguments) => stats::print_stats(arguments, context),
        LogCommand::Cost(arguments) => stats::print_cost(arguments, context),
        LogCommand::Export(arguments) => export::export_logs(arguments, context),
        LogCommand::Verify(arguments) => verify::verify_logs(arguments, context),
        LogCommand::Resolve(arguments) => resolve::resolve_call(arguments, context),
        LogCommand::Prune(arguments) => prune::prune_sessions(arguments, context),
    }
}
