//! The tasks of a turn, and the events that the dispatcher receives from them.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinError, JoinSet};
use tracing::{Instrument as _, Span};

use crate::approval::ApprovalReply;
use crate::attempt;
use crate::attempt::{Attempt, AttemptResult, AttemptRunner};
use crate::control::RunControl;
use crate::dispatcher::handle::{AgentRequest, DispatcherHandle};
use crate::progress::{MAX_QUEUED_PROGRESS, Progress, ProgressSender};
use toolq_core::types::{CallOutput, CallRef, CommitDone, EmitError, Outcome, Recollection};

/// An event from a task. Calls are numbered as in the dispatcher's queue.
#[derive(Debug)]
pub(crate) enum TaskEvent {
    /// A call reports progress.
    Progress(usize, Progress),
    /// An attempt has ended.
    AttemptFinished(usize, AttemptResult),
    /// The backoff before the next attempt has elapsed.
    BackoffElapsed(usize),
    /// The question whether a call may start was answered.
    ApprovalReplied(usize, ApprovalReply),
    /// An agent makes a request to its dispatcher.
    AgentRequest(usize, AgentRequest),
    /// The memory says what becomes of a call.
    Recalled(usize, Result<Recollection, EmitError>),
    /// Another run has come to the end of a call. `None` if it didn't in time.
    OtherRunEnded(usize, Option<Result<Recollection, EmitError>>),
    /// What calls need before they start is durable: whether each of them is claimed now.
    Committed(Vec<usize>, Result<Vec<bool>, EmitError>),
    /// The results up to this request are durable, or never will be.
    Synced(u64),
    /// What a probe has found is durable.
    Settled(usize, Result<(), EmitError>),
}

enum TaskResult {
    Attempt(AttemptResult),
    Backoff,
    Approval(ApprovalReply),
    Memory(TaskEvent),
}

/// The running tasks. Dropping this aborts them.
pub(crate) struct AttemptTasks {
    tasks: JoinSet<TaskResult>,
    call_numbers: HashMap<Id, usize>,
    /// The tasks that ask for an approval.
    questions: HashSet<Id>,
    progress_sender: mpsc::Sender<(usize, Progress)>,
    progress_receiver: mpsc::Receiver<(usize, Progress)>,
    request_sender: mpsc::UnboundedSender<(usize, AgentRequest)>,
    request_receiver: mpsc::UnboundedReceiver<(usize, AgentRequest)>,
    durable_sender: mpsc::UnboundedSender<TaskEvent>,
    durable_receiver: mpsc::UnboundedReceiver<TaskEvent>,
    /// The event of a task that has ended, and how many progress updates were queued before it. Those are returned
    /// first.
    pending_event: Option<(TaskEvent, usize)>,
}

impl AttemptTasks {
    pub(crate) fn new() -> Self {
        let (progress_sender, progress_receiver) = mpsc::channel(MAX_QUEUED_PROGRESS);
        let (request_sender, request_receiver) = mpsc::unbounded_channel();
        let (durable_sender, durable_receiver) = mpsc::unbounded_channel();
        Self {
            tasks: JoinSet::new(),
            call_numbers: HashMap::new(),
            questions: HashSet::new(),
            progress_sender,
            progress_receiver,
            request_sender,
            request_receiver,
            durable_sender,
            durable_receiver,
            pending_event: None,
        }
    }

    /// Returns the progress sender of a call. `is_shown` says whether its updates are shown.
    pub(crate) fn progress_sender(&self, call_number: usize, is_shown: bool) -> ProgressSender {
        ProgressSender {
            call_number,
            updates: self.progress_sender.clone(),
            is_shown,
        }
    }

    /// Returns the handle by which the agent of `call` talks to the dispatcher.
    pub(crate) fn dispatcher_handle(
        &self,
        call_number: usize,
        call: &Arc<CallRef>,
    ) -> DispatcherHandle {
        DispatcherHandle::new(call_number, Arc::clone(call), self.request_sender.clone())
    }

    /// Begins an attempt, whose diagnostics belong to `span`.
    pub(crate) fn begin_attempt(
        &mut self,
        call_number: usize,
        runner: Arc<dyn AttemptRunner>,
        attempt: Box<Attempt>,
        span: Span,
    ) {
        let work = async move {
            TaskResult::Attempt(attempt::run_with_drop_deadline(runner, attempt).await)
        };
        let task = self.tasks.spawn(work.instrument(span));
        self.call_numbers.insert(task.id(), call_number);
    }

    /// Spawns a task that waits before the next attempt. `cancel` ends the wait early.
    pub(crate) fn spawn_backoff(
        &mut self,
        call_number: usize,
        backoff: Duration,
        cancel: oneshot::Receiver<()>,
        control: RunControl,
    ) {
        let task = self.tasks.spawn(async move {
            tokio::select! {
                biased;
                Ok(()) = cancel => TaskResult::Attempt(AttemptResult::canceled_while_running(CallOutput::default())),
                () = control.sleep(backoff) => TaskResult::Backoff,
            }
        });
        self.call_numbers.insert(task.id(), call_number);
    }

    /// Spawns the task of a question whether a call may start.
    pub(crate) fn spawn_question(
        &mut self,
        call_number: usize,
        question: impl Future<Output = ApprovalReply> + Send + 'static,
    ) {
        let task = self
            .tasks
            .spawn(async move { TaskResult::Approval(question.await) });
        self.questions.insert(task.id());
        self.call_numbers.insert(task.id(), call_number);
    }

    /// Spawns a task that asks the memory about a call.
    pub(crate) fn spawn_memory_task(
        &mut self,
        call_number: usize,
        work: impl Future<Output = TaskEvent> + Send + 'static,
    ) {
        let task = self
            .tasks
            .spawn(async move { TaskResult::Memory(work.await) });
        self.call_numbers.insert(task.id(), call_number);
    }

    /// Returns what is to be called once these calls may start.
    pub(crate) fn commit_sender(&self, calls: Vec<usize>) -> CommitDone {
        let events = self.durable_sender.clone();
        Box::new(move |committed| drop(events.send(TaskEvent::Committed(calls, committed))))
    }

    /// Returns what is to be called once the results up to this request are durable. If they never will be, the log says so, and they
    /// are results all the same.
    pub(crate) fn sync_sender(&self, request: u64) -> CommitDone {
        let events = self.durable_sender.clone();
        Box::new(move |_| drop(events.send(TaskEvent::Synced(request))))
    }

    /// Returns the next event. A call's progress and requests come before its end.
    pub(crate) async fn next_event(&mut self) -> TaskEvent {
        loop {
            if let Some((event, updates_before)) = self.pending_event.take() {
                if let Ok((call, request)) = self.request_receiver.try_recv() {
                    self.pending_event = Some((event, updates_before));
                    return TaskEvent::AgentRequest(call, request);
                }
                let Some((left, Ok((call, progress)))) = updates_before
                    .checked_sub(1)
                    .map(|left| (left, self.progress_receiver.try_recv()))
                else {
                    return event;
                };
                self.pending_event = Some((event, left));
                return TaskEvent::Progress(call, progress);
            }
            tokio::select! {
                Some((call, progress)) = self.progress_receiver.recv() => return TaskEvent::Progress(call, progress),
                Some((call, request)) = self.request_receiver.recv() => return TaskEvent::AgentRequest(call, request),
                Some(event) = self.durable_receiver.recv() => return event,
                Some(done) = self.tasks.join_next_with_id() => {
                    let before = self.progress_receiver.len();
                    self.pending_event = self.event_from(done).map(|event| (event, before));
                }
            }
        }
    }

    /// Returns the next event if it has happened already.
    pub(crate) fn ready_event(&mut self) -> Option<TaskEvent> {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(self.next_event()).poll(&mut context) {
            Poll::Ready(event) => Some(event),
            Poll::Pending => None,
        }
    }

    fn event_from(&mut self, done: Result<(Id, TaskResult), JoinError>) -> Option<TaskEvent> {
        let id = done.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let call_number = self.call_numbers.remove(&id)?;
        let is_question = self.questions.remove(&id);
        Some(match done {
            Ok((_, TaskResult::Backoff)) => TaskEvent::BackoffElapsed(call_number),
            Ok((_, TaskResult::Approval(reply))) => TaskEvent::ApprovalReplied(call_number, reply),
            Ok((_, TaskResult::Memory(event))) => event,
            Ok((_, TaskResult::Attempt(result))) => TaskEvent::AttemptFinished(call_number, result),
            Err(error) if is_question => {
                let reply = ApprovalReply::Stopped(failure_text(error));
                TaskEvent::ApprovalReplied(call_number, reply)
            }
            Err(error) => TaskEvent::AttemptFinished(
                call_number,
                Outcome::InternalError(failure_text(error)).into(),
            ),
        })
    }
}

fn failure_text(error: JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else {
        return "the task was aborted".to_owned();
    };
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast::<&'static str>().map_or_else(
            |_| "a panic without a message".to_owned(),
            |text| (*text).to_owned(),
        ),
    }
}
