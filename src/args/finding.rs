//! What a person has found out about a call in doubt.

use clap::Args;
use toolq_log::Resolution;

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
    /// It did nothing: the next `run --resume`, or the next worker, runs it
    #[arg(long, conflicts_with = "done")]
    pub not_done: bool,
    /// How you know; recorded in the log
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub note: Option<String>,
}

impl FindingFlags {
    /// Returns what became of the call.
    pub fn resolution(&self) -> Resolution {
        match &self.result {
            Some(result) => Resolution::Done {
                result: result.clone(),
                is_error: self.error,
            },
            None => Resolution::NotDone,
        }
    }
}
