//! The command-line arguments, as typed, one file per command. `context` and the commands interpret them.

mod call;
mod check;
mod complete;
mod deferred;
mod finding;
mod first_steps;
mod generate;
mod init;
mod input;
mod log;
mod parse;
mod plan;
mod queue;
mod replay;
mod run;
mod serve;
mod servers;
mod shared_flags;
mod tools;
mod values;

pub(crate) use call::CallArguments;
pub(crate) use check::CheckArguments;
pub(crate) use complete::CompleteArguments;
pub(crate) use generate::{GenerateArguments, GeneratedFile};
pub(crate) use init::InitArguments;
pub(crate) use input::InputArguments;
pub(crate) use log::{
    ExportFormat, LogArguments, LogCommand, LogCostArguments, LogExportArguments, LogFileArguments,
    LogFormat, LogListArguments, LogPruneArguments, LogResolveArguments, LogShowArguments,
    LogStatsArguments,
};
pub(crate) use parse::parse_arguments;
pub(crate) use plan::PlanArguments;
pub(crate) use queue::{CollectArguments, QueueArguments, SubmitArguments, WorkArguments};
#[cfg(feature = "nats")]
pub(crate) use queue::{
    NatsFlags, QueueCommand, QueueNameArguments, QueuePurgeArguments, QueueResolveArguments,
    QueueStatusArguments, QueueTurnArguments,
};
pub(crate) use replay::ReplayArguments;
pub(crate) use run::RunArguments;
pub(crate) use serve::ServeArguments;
pub(crate) use servers::{ServersArguments, ServersCommand, ServersLockArguments};
pub(crate) use shared_flags::{ApprovalFlags, LogFlags, NewSessionLogFlags, OtlpFlags, WatchFlags};
pub(crate) use tools::ToolsArguments;
pub(crate) use values::{
    AgentLoopLanguage, ApproveFlag, CallFormat, CheckFormat, DialectFlag, IdsFlag, PlanFormat,
    ProgressFlag, ServersFormat, ToolsFormat,
};

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};

use crate::args::deferred::CommandArguments;
use crate::output::ColorChoice;

/// Answer a language model's tool calls.
///
/// toolq reads the `tool_use` blocks of a model's response, decides which calls can run in parallel, runs them as
/// declared in tools.yaml, and writes one `tool_result` per call, in call order.
#[derive(Debug, Parser)]
#[command(name = "toolq", version, propagate_version = true, max_term_width = 100, args_override_self = true, after_help = after_help())]
pub struct ProgramArguments<const DEFERRED: bool = true> {
    #[command(flatten)]
    pub common: CommonFlags,
    #[command(subcommand)]
    pub command: Command<DEFERRED>,
}

/// Example commands, each with what it does.
pub const EXAMPLES: [(&str, &str); 5] = [
    (
        "curl … /v1/messages | toolq run",
        "answer the calls of a model's response",
    ),
    ("toolq plan response.json", "show what would run, and why"),
    (
        "toolq replay transcripts/",
        "check recordings against the current tools",
    ),
    ("toolq check", "report every problem in tools.yaml"),
    ("toolq log show", "show the calls of the latest session"),
];

/// Exit codes, each with its meaning.
pub const EXIT_CODES: [(&str, &str); 9] = [
    ("0", "every call was answered; an error result is an answer"),
    (
        "1",
        "run --fail-on-error, call: a result is an error; replay: a call differs; check, plan --strict, servers, tools: problems found",
    ),
    ("2", "usage, tools.yaml, or input is wrong; nothing ran"),
    (
        "3",
        "a tool is paused, a call needs an approval, a budget is used up, a call is in doubt, an agent could not continue, or a stream broke off; every call is still answered",
    ),
    (
        "4",
        "the session log can't be used, or has an unfinished run",
    ),
    ("5", "run: there are no calls to answer"),
    (
        "71",
        "the system has no threads or descriptors left; nothing ran",
    ),
    ("74", "results could not be written"),
    (
        "129, 130, 131, 143",
        "hung up, interrupted, quit, or terminated; every call is still answered",
    ),
];

/// Width of the lines after the flags, in columns. clap would wrap a longer line without its indentation.
const AFTER_HELP_WIDTH: usize = 80;

fn after_help() -> String {
    let (examples, codes) = (format_rows(&EXAMPLES, 33), format_rows(&EXIT_CODES, 3));
    format!("Examples:\n{examples}\nExit codes:\n{}", codes.trim_end())
}

/// Formats terms of up to `term_width` columns, each followed by its meaning. A longer term has a line of its own.
fn format_rows(rows: &[(&str, &str)], term_width: usize) -> String {
    let indent = " ".repeat(2 + term_width + 1);
    let mut text = String::new();
    for (term, meaning) in rows {
        let mut line = format!("  {term:term_width$} ");
        if term.len() > term_width {
            text += line.trim_end();
            text.push('\n');
            line.clone_from(&indent);
        }
        for word in meaning.split(' ') {
            if line.len() + word.len() > AFTER_HELP_WIDTH && line.trim_start() != "" {
                text += line.trim_end();
                text.push('\n');
                line.clone_from(&indent);
            }
            line += word;
            line.push(' ');
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
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
    /// Print only errors
    #[arg(short, long, global = true, overrides_with = "verbose")]
    pub quiet: bool,
    /// Also print which files are used
    #[arg(short, long, global = true, overrides_with = "quiet")]
    pub verbose: bool,
}

// clap would take a doc comment for the description of the program.
// Unless `DEFERRED`, the arguments of all commands are known before one of them is given.
#[derive(Debug, Subcommand)]
pub enum Command<const DEFERRED: bool = true> {
    /// Run the tool calls of a model response and print their results
    Run(CommandArguments<RunArguments, DEFERRED>),
    /// Show what would run, in which batches, and why, without running it
    Plan(CommandArguments<PlanArguments, DEFERRED>),
    /// Run one call of one tool, or one agent, and print its result
    Call(CommandArguments<CallArguments, DEFERRED>),
    /// Serve the tools to clients of the Model Context Protocol (MCP), over stdin and stdout or HTTP
    Serve(CommandArguments<ServeArguments, DEFERRED>),
    /// Put tool calls into a queue on NATS JetStream, for workers on any machine
    Submit(CommandArguments<SubmitArguments, DEFERRED>),
    /// Answer the turns of a queue
    Work(CommandArguments<WorkArguments, DEFERRED>),
    /// Print the answers of a queue, in the order in which the turns were submitted
    Collect(CommandArguments<CollectArguments, DEFERRED>),
    /// Show what is in a queue, or remove it
    Queue(CommandArguments<QueueArguments, DEFERRED>),
    /// Check recordings against the current tools: inputs still valid, results unchanged
    Replay(CommandArguments<ReplayArguments, DEFERRED>),
    /// Report problems in tools.yaml and, with --machine, what this machine lacks
    Check(CommandArguments<CheckArguments, DEFERRED>),
    /// Print the tool declarations for a model
    Tools(CommandArguments<ToolsArguments, DEFERRED>),
    /// Ask the MCP servers in tools.yaml for their tools, and compare them with tools.lock
    Servers(CommandArguments<ServersArguments, DEFERRED>),
    /// Inspect session logs, and resolve calls in doubt
    Log(CommandArguments<LogArguments, DEFERRED>),
    /// Print a generated file: a schema, shell completions, or the man page
    Generate(CommandArguments<GenerateArguments, DEFERRED>),
    /// Create a starter tools.yaml
    Init(CommandArguments<InitArguments, DEFERRED>),
    /// Print what can complete a command line, for the completion scripts
    #[command(name = "__complete", hide = true)]
    Complete(CommandArguments<CompleteArguments, DEFERRED>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_after_the_flags_fits_a_narrow_terminal() {
        let text = after_help();
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert!(
            text.contains("\n  74  results could not be written\n"),
            "{text}"
        );
        assert!(
            text.contains("\n  129, 130, 131, 143\n      hung up"),
            "{text}"
        );
    }
}
