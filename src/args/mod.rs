//! The command-line arguments, as typed, one file per command. `context` and the commands interpret them.

mod agent;
mod check;
mod complete;
mod generate;
mod init;
mod input;
mod log;
mod parse;
mod plan;
mod replay;
mod run;
mod shared_flags;
mod tools;
mod values;

pub(crate) use agent::AgentArguments;
pub(crate) use check::CheckArguments;
pub(crate) use complete::CompleteArguments;
pub(crate) use generate::{GenerateArguments, GeneratedFile};
pub(crate) use init::InitArguments;
pub(crate) use input::InputArguments;
pub(crate) use log::{
    ExportFormat, LogArguments, LogCommand, LogCostArguments, LogExportArguments, LogFileArguments,
    LogFormat, LogPruneArguments, LogResolveArguments, LogShowArguments, LogStatsArguments,
};
pub(crate) use parse::parse_arguments;
pub(crate) use plan::PlanArguments;
pub(crate) use replay::ReplayArguments;
pub(crate) use run::RunArguments;
pub(crate) use shared_flags::{LogFlags, WatchFlags};
pub(crate) use tools::ToolsArguments;
pub(crate) use values::{
    AnswerFormat, DialectFlag, IdsFlag, PlanFormat, ProgressFlag, ToolsFormat,
};

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};

use crate::output::ColorChoice;

/// Answer a language model's tool calls.
///
/// toolq reads the `tool_use` blocks of a model's response, decides which calls can run in parallel, runs them as
/// declared in tools.yaml, and writes one `tool_result` per call, in call order.
#[derive(Debug, Parser)]
#[command(name = "toolq", version, propagate_version = true, max_term_width = 100, args_override_self = true, after_help = after_help())]
pub struct ProgramArguments {
    #[command(flatten)]
    pub common: CommonFlags,
    #[command(subcommand)]
    pub command: Command,
}

/// Example commands, each with what it does.
pub const EXAMPLES: [(&str, &str); 5] = [
    (
        "curl … /v1/messages | toolq run",
        "answer the tool calls of one model response",
    ),
    (
        "toolq plan response.json",
        "show what would run, in which batches, and why",
    ),
    (
        "toolq replay transcripts/",
        "check recordings against the current tools",
    ),
    (
        "toolq check",
        "report every problem in tools.yaml, with its location",
    ),
    (
        "toolq log show",
        "show the calls of the latest session and their results",
    ),
];

/// Exit codes, each with its meaning.
pub const EXIT_CODES: [(&str, &str); 9] = [
    ("0", "every call was answered; an error result is an answer"),
    (
        "1",
        "run --fail-on-error: a result is an error; replay: a call differs; check, plan --strict: problems found",
    ),
    ("2", "usage, tools.yaml, or input is wrong; nothing ran"),
    (
        "3",
        "a tool is paused, a budget is used up, a call is in doubt, or the input broke off; every call is still answered",
    ),
    (
        "4",
        "the session log can't be used, or has an unfinished run",
    ),
    ("5", "run: the model made no tool calls"),
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

fn after_help() -> String {
    let rows = |rows: &[(&str, &str)], width: usize| {
        let rows = rows.iter();
        let rows = rows.map(|(term, meaning)| format!("  {term:width$} {meaning}\n"));
        rows.collect::<String>()
    };
    let (examples, codes) = (rows(&EXAMPLES, 35), rows(&EXIT_CODES, 2));
    format!("Examples:\n{examples}\nExit codes:\n{}", codes.trim_end())
}

/// The tools file, unless `-c` or `TOOLQ_TOOLS` names another.
pub const DEFAULT_TOOLS_FILE: &str = "tools.yaml";

/// Flags shared by all commands.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct CommonFlags {
    /// The file that declares the tools; `-` is stdin [env: `TOOLQ_TOOLS`] [default: tools.yaml]
    // An empty variable counts as unset, which clap's `env` doesn't support.
    #[arg(
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

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the tool calls of a model response and print their results
    Run(Box<RunArguments>),
    /// Show what would run, in which batches, and why, without running it
    Plan(PlanArguments),
    /// Run one agent on an input until it answers
    Agent(Box<AgentArguments>),
    /// Check recordings against the current tools: inputs still valid, results unchanged
    Replay(Box<ReplayArguments>),
    /// Report problems in tools.yaml
    Check(CheckArguments),
    /// Print the tool declarations for a model
    Tools(ToolsArguments),
    /// Inspect session logs, and resolve calls in doubt
    Log(LogArguments),
    /// Print a generated file: a schema, shell completions, or the man page
    Generate(GenerateArguments),
    /// Create a starter tools.yaml
    Init(InitArguments),
    /// Print what can complete a command line, for the completion scripts
    #[command(name = "__complete", hide = true)]
    Complete(CompleteArguments),
}
