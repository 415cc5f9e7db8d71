//! What `run` and `agent` are both told: where the log is, who watches, what may be used.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use crate::args::values::{Progress, Sync};
use toolq_core::text::{parse_bytes, parse_duration};
use toolq_engine::Budgets;
use toolq_log::Begin;

/// Which session log a run keeps.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct LogFlags {
    /// The session log, written behind what it has already [default: a new file below `$XDG_STATE_HOME/toolq/sessions`]
    #[arg(id = "log", long = "log", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Keep no session log
    #[arg(long, conflicts_with = "log")]
    pub no_log: bool,
    /// Finish what the last run in the log began: what has its result, and what a model has answered an agent, is taken from
    /// there, and what is missing runs. Without `--log`, the latest session of this input
    #[arg(long, conflicts_with_all = ["no_log", "new"])]
    pub resume: bool,
    /// Begin another run in the log, also behind one that was left unfinished
    #[arg(long, conflicts_with = "no_log")]
    pub new: bool,
    /// Resume although tools.yaml has changed: what is missing runs by the tools of today
    #[arg(long, requires = "resume", conflicts_with = "new")]
    pub accept_changes: bool,
    /// Which calls' records survive a loss of power before toolq goes on: those that may do something, or all
    #[arg(
        long,
        value_name = "WHICH",
        default_value = "auto",
        conflicts_with = "no_log"
    )]
    pub sync: Sync,
}

impl LogFlags {
    /// How the run stands to those that the log has already.
    pub fn begin(&self) -> Begin {
        match (self.resume, self.new) {
            (true, _) => Begin::Resume,
            (_, true) => Begin::New,
            _ => Begin::Next,
        }
    }
}

/// Who is told what happens.
#[derive(Debug, Args)]
pub struct WatchFlags {
    /// Write events as NDJSON to a descriptor (`fd:3`) or behind what a file has already
    #[arg(long, value_name = "FILE|fd:N")]
    pub events: Option<String>,
    /// How to show what runs
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub progress: Progress,
}

/// What all calls together may use.
#[derive(Debug, Clone, Copy, Args)]
pub struct BudgetFlags {
    /// Start so many calls at most; the others are answered without being run
    #[arg(long, value_name = "N")]
    pub max_calls: Option<u64>,
    /// End what runs after so long, and start nothing more
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub time_budget: Option<Duration>,
    /// End what runs once tools have written so many bytes of results, and start nothing more
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub max_output_total: Option<u64>,
}

impl From<&BudgetFlags> for Budgets {
    fn from(flags: &BudgetFlags) -> Self {
        Self {
            calls: flags.max_calls,
            time: flags.time_budget,
            output: flags.max_output_total,
        }
    }
}
