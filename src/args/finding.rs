//! What a person has found out about a call in doubt.

use clap::Args;

use redact::Mask;
use toolq_core::os::Clock;
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
    pub not_done: bool,
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
            result: self.result.as_ref().map(apply),
            is_error: self.error,
            by: "person".to_owned(),
            note: self.note.as_ref().map(apply),
            timestamp: Clock::system().now_ms(),
        }
    }
}
