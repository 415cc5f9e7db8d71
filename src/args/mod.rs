//! The command-line arguments, as typed, one file per command. `context` and the commands interpret them.

mod approvals;
mod call;
mod check;
mod complete;
mod finding;
mod generate;
mod init;
mod input;
mod log;
mod parse;
mod plan;
mod program_help;
mod queue;
mod replay;
mod run;
mod serve;
mod servers;
mod shared_flags;
mod tools;
mod values;

pub(crate) use approvals::{ApprovalsArguments, ApprovalsCommand};
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
pub(crate) use program_help::{EXAMPLES, EXIT_CODES};
pub(crate) use queue::QueueArguments;
#[cfg(feature = "nats")]
pub(crate) use queue::{
    CollectArguments, NatsFlags, QueueCommand, QueueResolveArguments, SubmitArguments,
    WorkArguments,
};
pub(crate) use replay::ReplayArguments;
pub(crate) use run::RunArguments;
pub(crate) use serve::ServeArguments;
pub(crate) use servers::{ServersArguments, ServersCommand, ServersLockArguments};
pub(crate) use shared_flags::{ApprovalFlags, LogFlags, OtlpFlags, WatchFlags};
pub(crate) use tools::ToolsArguments;
pub(crate) use values::{
    AgentLoopLanguage, ApproveFlag, CallFormat, CheckFormat, IdsFlag, InputFormat, PlanFormat,
    ProgressFlag, ServersFormat, StarterKind, ToolsFormat,
};

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};

use crate::output::ColorChoice;

/// Answer a language model's tool calls.
///
/// toolq reads the `tool_use` blocks of a model's response, decides which calls can run in parallel, runs them as
/// declared in tools.yaml, and writes one `tool_result` per call, in call order.
#[derive(Debug, Parser)]
#[command(name = "toolq", version, propagate_version = true, max_term_width = 100, args_override_self = true, after_help = program_help::after_help())]
pub struct ProgramArguments {
    #[command(flatten)]
    pub common: CommonFlags,
    #[command(subcommand)]
    pub command: Command,
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
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the tool calls of a model's response
    Run(RunArguments),
    /// Show what would run, in which batches, and why
    Plan(PlanArguments),
    /// Run one call of a tool or of an agent
    Call(CallArguments),
    /// Check recordings against the current tools
    Replay(ReplayArguments),
    /// Create a tools.yaml to start from
    Init(InitArguments),
    /// Report problems in tools.yaml or on this machine
    Check(CheckArguments),
    /// Print the tool declarations for a model
    Tools(ToolsArguments),
    /// Compare the tools of servers with tools.lock
    Servers(ServersArguments),
    /// Serve the tools to MCP clients
    Serve(ServeArguments),
    /// List, approve and deny the calls that wait
    Approvals(ApprovalsArguments),
    /// Inspect session logs, and resolve calls in doubt
    Log(LogArguments),
    /// Have turns answered by many machines, over NATS
    #[command(hide = cfg!(not(feature = "nats")))]
    Queue(QueueArguments),
    /// Print a generated file: a schema, shell completions, or the man page
    #[command(hide = true)]
    Generate(GenerateArguments),
    /// Print what can complete a command line, for the completion scripts
    #[command(name = "__complete", hide = true)]
    Complete(CompleteArguments),
}
