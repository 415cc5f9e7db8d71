//! One attempt of a call: what it is given, how it can end, and the task that runs it.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::agent::Around;
use crate::control::{Control, Suspend};
use crate::dispatcher::Desk;
use crate::output::Output;
use crate::progress::Voice;
use crate::run_budget::Meter;
use crate::scheduler::{Job, Limit};
use toolq_core::text::format_duration;
use toolq_core::types::{Captured, Outcome};

/// How long an attempt may take to be over at once, with what it has written.
const LAST: Duration = Duration::from_millis(600);

/// What an attempt is given.
pub(crate) struct Attempt {
    pub(crate) job: Arc<Job>,
    /// Asks the tool's probe instead of running the call.
    pub(crate) probe: bool,
    pub(crate) key: Arc<str>,
    pub(crate) limit: Limit,
    /// Resolves when the attempt is to end.
    pub(crate) cancel: oneshot::Receiver<()>,
    pub(crate) voice: Voice,
    /// Where it brings its turns, if it is an agent's.
    pub(crate) desk: Option<Desk>,
    /// The agent that asked for it.
    pub(crate) around: Option<Arc<Around>>,
    /// Counts what it writes.
    pub(crate) meter: Meter,
    /// The run's time, which limits are of.
    pub(crate) control: Control,
}

/// How an attempt ended.
#[derive(Debug)]
pub(crate) enum End {
    /// By itself or by its limit.
    Outcome {
        outcome: Outcome,
        /// The least time that a server wants to pass before the next attempt.
        retry_after: Option<Duration>,
    },
    /// It was told to end, and did.
    Cancelled {
        written: Written,
        /// How far it may have come with its work.
        reach: Reach,
    },
}

/// How far an attempt may have come with its work when it was told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It has not begun, and never will.
    Nowhere,
    /// It was ended in the middle.
    Midway,
    /// It changes something elsewhere, and may have done so.
    Unknown,
}

/// What an attempt had written when it was told to end.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) output: String,
    pub(crate) stderr: String,
    pub(crate) captured: Captured,
}

impl Written {
    pub(crate) fn new(output: Output, stderr: String) -> Self {
        let (output, captured) = output.into_text();
        Self {
            output,
            stderr,
            captured,
        }
    }
}

impl End {
    /// Of an attempt that was ended in the middle.
    pub(crate) fn midway(written: Written) -> Self {
        Self::Cancelled {
            written,
            reach: Reach::Midway,
        }
    }
}

impl From<Outcome> for End {
    fn from(outcome: Outcome) -> Self {
        Self::Outcome {
            outcome,
            retry_after: None,
        }
    }
}

/// Waits until an attempt is told to end: it alone, or all at once.
pub(crate) async fn called_off(cancel: oneshot::Receiver<()>, control: &Control) {
    tokio::select! {
        Ok(()) = cancel => {}
        () = control.killing() => {}
    }
}

/// An attempt that is under way.
pub(crate) type Work<'r> = Pin<Box<dyn Future<Output = End> + Send + 'r>>;

/// Who runs attempts. The engine's order and policies don't depend on what running means.
pub(crate) trait Runner: Suspend {
    /// Runs one attempt to its end, within its limit.
    fn run(&self, attempt: Attempt) -> Work<'_>;

    /// Nothing runs any more, and nothing will.
    fn close(&self) {}
}

/// Runs an attempt. When all is to be over at once and it is not, soon after, it is dropped, which kills what it runs.
pub(crate) async fn run(runner: Arc<dyn Runner>, attempt: Attempt) -> End {
    let control = attempt.control.clone();
    let over = async {
        control.killing().await;
        sleep(LAST).await;
    };
    tokio::select! {
        end = work(runner, attempt) => end,
        () = over => End::midway(Written::default()),
    }
}

/// Runs an attempt, and tells people when it takes longer than `timeout.slow`.
async fn work(runner: Arc<dyn Runner>, attempt: Attempt) -> End {
    let slow = attempt.job.accepted.tool.timeout.slow;
    let (voice, control) = (attempt.voice.clone(), attempt.control.clone());
    let mut work = pin!(runner.run(attempt));
    if let Some(slow) = slow {
        tokio::select! {
            end = &mut work => return end,
            () = control.sleep(slow) => voice.tip(format!("still running after {}", format_duration(slow))),
        }
    }
    work.await
}
