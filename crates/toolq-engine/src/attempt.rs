//! One attempt of a call: its inputs, how it can end, the task that runs it, and how it reports progress.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use crate::agent_requests::TurnHandle;
use crate::agent_scope::AgentScope;
use crate::control::RunControl;
use crate::conversation_outputs::ConversationOutputs;
use crate::reach::Reach;
use crate::run_budget::OutputCounter;
use crate::scheduler::Ticket;
use crate::timing::DROP_DEADLINE;
use toolq_core::text::format_duration;
use toolq_core::types::{AcceptedCall, Approval, Call, CallOutput, CallTrace, Invocation, Outcome};

/// The inputs of one attempt. It is passed on in a box, since each future on its way would have room for it otherwise.
pub(crate) struct Attempt {
    pub(crate) job: Arc<CallJob>,
    /// Runs the tool's probe instead of the call.
    pub(crate) is_probe: bool,
    /// Its number, from 1.
    pub(crate) number: u32,
    pub(crate) idempotency_key: Arc<str>,
    /// The place of the call in a trace, if the run is traced.
    pub(crate) trace: Option<CallTrace>,
    pub(crate) timeout: AttemptTimeout,
    /// Resolves when the attempt must stop.
    pub(crate) cancel: oneshot::Receiver<()>,
    pub(crate) progress: ProgressSender,
    /// How an agent reaches the turn of its call. `None` for all other calls.
    pub(crate) turn: Option<TurnHandle>,
    /// The scope of the agent that made the call. `None` for calls of the input.
    pub(crate) parent_scope: Option<Arc<AgentScope>>,
    /// The outputs that its conversation can read. `None` if the conversation can't be identified.
    pub(crate) outputs: Option<ConversationOutputs>,
    /// Counts the bytes it writes, for the run's output budget.
    pub(crate) output_counter: OutputCounter,
    /// Says when the run is killed, and has the pausable clock that measures timeouts.
    pub(crate) control: RunControl,
}

/// How long an attempt may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptTimeout {
    /// The time allowed, from the start of the attempt.
    pub(crate) duration: Duration,
    /// The limit in tools.yaml that this comes from.
    pub(crate) configured: Duration,
}

/// How an attempt ended.
#[derive(Debug)]
pub(crate) enum AttemptResult {
    /// It ended on its own or timed out.
    Finished {
        outcome: Outcome,
        /// The minimum wait before the next attempt that the server requested.
        retry_after: Option<Duration>,
    },
    /// It was canceled.
    Canceled {
        partial_output: CallOutput,
        reach: Reach,
    },
}

impl AttemptResult {
    /// Returns the result of an attempt that was stopped midway.
    pub(crate) fn canceled_while_running(partial_output: CallOutput) -> Self {
        Self::Canceled {
            partial_output,
            reach: Reach::Harmless,
        }
    }
}

impl From<Outcome> for AttemptResult {
    fn from(outcome: Outcome) -> Self {
        Self::Finished {
            outcome,
            retry_after: None,
        }
    }
}

/// Waits until an attempt must stop, either because it was canceled or because the whole run is being killed.
pub(crate) async fn canceled(cancel: oneshot::Receiver<()>, control: &RunControl) {
    tokio::select! {
        Ok(()) = cancel => {}
        () = control.wait_for_kill() => {}
    }
}

/// A running attempt.
pub(crate) type AttemptFuture<'r> = Pin<Box<dyn Future<Output = AttemptResult> + Send + 'r>>;

/// Runs attempts. The engine's ordering and policies don't depend on what running means.
pub(crate) trait AttemptRunner: Send + Sync {
    /// Runs one attempt to its end, within its timeout.
    fn run(&self, attempt: Box<Attempt>) -> AttemptFuture<'_>;
}

/// Runs an attempt. If it doesn't return within [`DROP_DEADLINE`] of a kill, it is dropped, which kills what it runs.
pub(crate) async fn run_with_drop_deadline(
    runner: Arc<dyn AttemptRunner>,
    attempt: Box<Attempt>,
) -> AttemptResult {
    let control = attempt.control.clone();
    let drop_deadline = async {
        control.wait_for_kill().await;
        sleep(DROP_DEADLINE).await;
    };
    tokio::select! {
        // What an attempt returns is more than this knows, so it goes first.
        biased;
        result = run_with_slow_notice(runner, attempt) => result,
        () = drop_deadline => AttemptResult::canceled_while_running(CallOutput::default()),
    }
}

/// Runs an attempt, and sends a progress message when it takes longer than `timeout.slow`.
async fn run_with_slow_notice(
    runner: Arc<dyn AttemptRunner>,
    attempt: Box<Attempt>,
) -> AttemptResult {
    let Some(slow) = attempt.job.accepted.tool.timeout.slow_after else {
        return runner.run(attempt).await;
    };
    let (progress, control) = (attempt.progress.clone(), attempt.control.clone());
    let mut work = runner.run(attempt);
    let is_slow = Box::pin(control.sleep(slow));
    tokio::select! {
        result = &mut work => return result,
        () = is_slow => progress.send_message(format!("still running after {}", format_duration(slow))),
    }
    work.await
}

// Progress of a running attempt.

/// The maximum number of progress updates that wait to be shown. Further ones are dropped: people couldn't read
/// that many, and they must not fill up memory.
pub(crate) const MAX_QUEUED_PROGRESS: usize = 256;

/// A progress update about a running call, shown to people.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    pub(crate) message: Option<String>,
    /// From 0 to 1.
    pub(crate) fraction: Option<f64>,
    /// What to show as its parameters.
    pub(crate) params: Option<Box<RawValue>>,
    /// What to show as its result.
    pub(crate) result: Option<Box<RawValue>>,
}

/// Sends the progress updates of an attempt.
#[derive(Debug, Clone)]
pub(crate) struct ProgressSender {
    pub(crate) updates: mpsc::Sender<Progress>,
    /// Whether the updates are shown.
    pub(crate) is_shown: bool,
}

impl ProgressSender {
    pub(crate) fn send(&self, progress: Progress) {
        // When the queue is full, the update is dropped on purpose.
        let _ = self.updates.try_send(progress);
    }

    pub(crate) fn send_message(&self, message: String) {
        self.send(Progress {
            message: Some(message),
            ..Progress::default()
        });
    }
}

/// A call that may run, shared with the task that runs it.
#[derive(Debug)]
pub(crate) struct CallJob {
    pub(crate) call: Call,
    pub(crate) accepted: AcceptedCall,
    pub(crate) ticket: Option<Ticket>,
    /// Whether the memory keeps it: it may change something.
    pub(crate) is_remembered: bool,
    /// What was said about it when an earlier run asked whether it may start.
    pub(crate) approval: Option<Box<Approval>>,
    /// Its outcome if it is left alone, because of an earlier start that nothing is known of yet.
    pub(crate) unsettled: Option<Box<Outcome>>,
}

impl CallJob {
    /// Returns whether it is a call of an agent.
    pub(crate) fn is_agent(&self) -> bool {
        matches!(self.accepted.invocation, Some(Invocation::Agent(_)))
    }

    /// Returns the outcome of a call that this run hasn't claimed. One that an earlier run has started, and that is left alone
    /// now, isn't just skipped.
    pub(super) fn unclaimed_outcome(&self, outcome: Outcome) -> Outcome {
        let is_left_alone = outcome.is_skipped() || matches!(outcome, Outcome::Denied { .. });
        match &self.unsettled {
            Some(unsettled) if is_left_alone => (**unsettled).clone(),
            _ => outcome,
        }
    }
}
