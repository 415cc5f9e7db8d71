//! `toolq queue`: turns that workers on any machine answer. `verbs` does what the arguments say, in a build with `nats`.

#[cfg(feature = "nats")]
mod verbs;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};

use crate::args::{
    FindingFlags, InputArguments, LogFormat, answer_form_parser, parse_ack_wait, parse_jobs,
};
#[cfg(not(feature = "nats"))]
use crate::context::CommandContext;
#[cfg(not(feature = "nats"))]
use crate::output::{CommandError, Exit};
use toolq_core::text::parse_duration;
use toolq_core::types::AnswerForm;

#[cfg(feature = "nats")]
pub(crate) use verbs::run_queue_command;

/// Where NATS is.
#[derive(Debug, Args)]
#[command(next_help_heading = "NATS")]
pub(crate) struct NatsFlags {
    #[arg(
        long = "nats",
        value_name = "URL",
        value_hint = ValueHint::Url,
        help = "Server, or several with commas [env: NATS_URL] [default: nats://127.0.0.1:4222]"
    )]
    pub url: Option<String>,
    /// File with a user's JWT and seed, as `nsc` writes it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    credentials: Option<PathBuf>,
    /// Certificates of authorities to trust in addition to the system's (PEM)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    tls_ca: Option<PathBuf>,
    /// Certificate to present to the server (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key", value_hint = ValueHint::FilePath)]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    tls_key: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SubmitArguments {
    /// The queue; it is created if there is none
    #[arg(value_name = "QUEUE")]
    pub queue: String,
    #[command(flatten)]
    pub input: InputArguments,
    /// Submit the input again, even if the queue has it
    #[arg(long)]
    pub new: bool,
    /// Format of the answers [default: that of the calls]
    #[arg(long, value_name = "FORM", value_parser = answer_form_parser())]
    pub to: Option<AnswerForm>,
    /// Copies of the queue's stream, if it is created: 3 survive the loss of a server
    #[arg(long, value_name = "N", default_value = "1")]
    replicas: NonZeroUsize,
    #[command(flatten)]
    pub nats: NatsFlags,
}

#[derive(Debug, Args)]
pub(crate) struct WorkArguments {
    /// The queue; it is created if there is none
    #[arg(value_name = "QUEUE")]
    pub queue: String,
    /// Maximum number of calls to run at once; 1 turns parallelism off [default: `concurrency` in tools.yaml]
    #[arg(short, long, value_name = "N", value_parser = parse_jobs)]
    pub jobs: Option<NonZeroUsize>,
    /// Give a turn to another worker after this time without a sign of life; for all workers of the queue [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = parse_ack_wait)]
    ack_wait: Option<Duration>,
    /// After a signal, take this time to finish the current turn before it is stopped and handed back
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub drain: Duration,
    /// Don't run a turn anymore that so many workers were lost over
    #[arg(long, value_name = "N", default_value = "5")]
    max_deliveries: NonZeroUsize,
    /// End when no turn is left
    #[arg(long)]
    until_empty: bool,
    /// Copies of the queue's stream, if it is created: 3 survive the loss of a server
    #[arg(long, value_name = "N", default_value = "1")]
    replicas: NonZeroUsize,
    #[command(flatten)]
    pub nats: NatsFlags,
}

#[derive(Debug, Args)]
pub struct QueueArguments {
    #[command(subcommand)]
    pub command: QueueCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Put tool calls into a queue, for workers on any machine
    Submit(SubmitArguments),
    /// Answer the turns of a queue
    Work(WorkArguments),
    /// Print the answers of a queue, in the order in which the turns were submitted
    Collect {
        #[command(flatten)]
        at: QueueNameArguments,
        /// End when everything that was submitted is answered
        #[arg(long)]
        until_empty: bool,
        /// Begin with the first turn, instead of where the last `collect` ended
        #[arg(long)]
        from_start: bool,
    },
    /// Show what waits, what runs, and what is in doubt
    Status {
        #[command(flatten)]
        at: QueueNameArguments,
        /// Output format
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: LogFormat,
    },
    /// List the turns that aren't run anymore, because too many workers were lost over them
    Dead(QueueNameArguments),
    /// Print the session log of a turn, for `toolq log show -`
    Log {
        #[command(flatten)]
        at: QueueNameArguments,
        /// The turn, as `queue status` and `queue dead` name it
        #[arg(value_name = "TURN")]
        turn: String,
    },
    /// Cancel a turn that isn't answered: what runs of it is stopped, and nothing more starts
    Cancel {
        #[command(flatten)]
        at: QueueNameArguments,
        /// The turn, as `queue status` and `queue dead` name it
        #[arg(value_name = "TURN")]
        turn: String,
    },
    /// Record what became of a call in doubt, and answer its turn again
    #[command(after_help = RESOLVE_EXAMPLES)]
    Resolve(QueueResolveArguments),
    /// Remove a queue, with all turns, logs, and answers
    Purge {
        #[command(flatten)]
        at: QueueNameArguments,
        /// Also if turns have no answer yet
        #[arg(long)]
        force: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct QueueNameArguments {
    /// The queue
    #[arg(value_name = "QUEUE")]
    pub queue: String,
    #[command(flatten)]
    pub nats: NatsFlags,
}

const RESOLVE_EXAMPLES: &str = "\
Examples:
  toolq queue resolve jobs toolu_01 --done --result 'paid, receipt 4711'
  toolq queue resolve jobs toolu_01 --not-done --note 'the bank has no record of it'";

/// clap's own usage line would be wider than a narrow terminal.
const RESOLVE_USAGE: &str = "\
toolq queue resolve <QUEUE> <ID> --done --result <TEXT>
       toolq queue resolve <QUEUE> <ID> --not-done";

#[derive(Debug, Args)]
#[command(override_usage = RESOLVE_USAGE)]
pub(crate) struct QueueResolveArguments {
    #[command(flatten)]
    pub at: QueueNameArguments,
    /// The call: its `tool_use_id`
    #[arg(value_name = "ID")]
    pub id: String,
    /// Its turn, if calls of several have this id
    #[arg(long, value_name = "TURN")]
    pub turn: Option<String>,
    #[command(flatten)]
    pub finding: FindingFlags,
}

/// What a toolq without the feature `nats` has.
///
/// # Errors
/// Always: this build has no queues.
#[cfg(not(feature = "nats"))]
pub(crate) fn run_queue_command(
    _: &QueueArguments,
    _: &CommandContext,
) -> Result<Exit, CommandError> {
    Err(
        CommandError::usage("this toolq was built without `nats`; nothing ran").with_hint(
            "packages of toolq have it; from source: `cargo install --locked --path . --features nats`",
        ),
    )
}
