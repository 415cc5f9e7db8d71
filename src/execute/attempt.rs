//! One attempt of a call: what it is given, how it can end, and the task that runs it.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use crate::model::{Backing, Captured, Invocation, Outcome, format_duration};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::EngineSettings;
use super::agent::{Agents, Around};
use super::budget::Meter;
use super::command::Commands;
use super::control::{Control, Suspend};
use super::desk::Desk;
use super::http::Requests;
use super::output::Output;
use super::queue::Job;
use super::running::Voice;

/// How long an attempt may take to be over at once, with what it has written.
const LAST: Duration = Duration::from_millis(600);

/// How long an attempt may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    /// From its start on.
    pub(super) after: Duration,
    /// The limit of tools.yaml that this comes from.
    pub(super) named: Duration,
}

/// What an attempt is given.
pub(super) struct Attempt {
    pub(super) job: Arc<Job>,
    /// Asks the tool's probe instead of running the call.
    pub(super) probe: bool,
    pub(super) key: Arc<str>,
    pub(super) limit: Limit,
    /// Resolves when the attempt is to end.
    pub(super) cancel: oneshot::Receiver<()>,
    pub(super) voice: Voice,
    /// Where it brings its turns, if it is an agent's.
    pub(super) desk: Option<Desk>,
    /// The agent that asked for it.
    pub(super) around: Option<Arc<Around>>,
    /// Counts what it writes.
    pub(super) meter: Meter,
    /// The run's time, which limits are of.
    pub(super) control: Control,
}

/// How an attempt ended.
#[derive(Debug)]
pub(super) enum End {
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
pub(super) enum Reach {
    /// It has not begun, and never will.
    Nowhere,
    /// It was ended in the middle.
    Midway,
    /// It changes something elsewhere, and may have done so.
    Unknown,
}

/// What an attempt had written when it was told to end.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) output: String,
    pub(super) stderr: String,
    pub(super) captured: Captured,
}

impl Written {
    pub(super) fn new(output: Output, stderr: String) -> Self {
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
    pub(super) fn midway(written: Written) -> Self {
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
pub(super) async fn called_off(cancel: oneshot::Receiver<()>, control: &Control) {
    tokio::select! {
        Ok(()) = cancel => {}
        () = control.killing() => {}
    }
}

/// An attempt that is under way.
pub(super) type Work<'r> = Pin<Box<dyn Future<Output = End> + Send + 'r>>;

/// Who runs attempts. The engine's order and policies don't depend on what running means.
pub(super) trait Runner: Suspend {
    /// Runs one attempt to its end, within its limit.
    fn run(&self, attempt: Attempt) -> Work<'_>;

    /// Nothing runs any more, and nothing will.
    fn close(&self) {}
}

/// The backings of tools.yaml.
pub(super) struct Backings {
    commands: Commands,
    requests: Requests,
    agents: Agents,
}

impl Backings {
    pub(super) fn new(settings: &EngineSettings) -> Self {
        Self {
            commands: Commands::new(settings),
            requests: Requests::new(settings),
            agents: Agents::new(settings),
        }
    }

    async fn back(&self, attempt: Attempt) -> End {
        let job = Arc::clone(&attempt.job);
        let accepted = &job.accepted;
        if attempt.probe {
            return match (&accepted.probe, &accepted.tool.probe) {
                (Some(probe), backing) => self.commands.run(probe, backing.as_ref(), attempt).await,
                (None, _) => Outcome::NoBacking.into(),
            };
        }
        match &accepted.invocation {
            Some(Invocation::Command(command)) => {
                let backing = match &accepted.tool.backing {
                    Some(Backing::Command(backing)) => Some(backing),
                    _ => None,
                };
                self.commands.run(command, backing, attempt).await
            }
            Some(Invocation::Http(request)) => self.requests.run(request, attempt).await,
            Some(Invocation::Agent(task)) => self.agents.run(task, attempt).await,
            Some(Invocation::Completion(result)) => self.agents.complete(result, &attempt).into(),
            None => Outcome::NoBacking.into(),
        }
    }
}

/// Requests are not stopped: who answers them doesn't wait. Only their limits are.
impl Suspend for Backings {
    fn suspend(&self) {
        self.commands.hold();
    }

    fn resume(&self) {
        self.commands.release();
    }
}

impl Runner for Backings {
    fn run(&self, attempt: Attempt) -> Work<'_> {
        Box::pin(self.back(attempt))
    }

    fn close(&self) {
        self.commands.close();
    }
}

/// Runs an attempt. When all is to be over at once and it is not, soon after, it is dropped, which kills what it runs.
pub(super) async fn run(runner: Arc<dyn Runner>, attempt: Attempt) -> End {
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
