//! Which workers are running: each reports when it receives the roll call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::{Client, Message, StatusCode};
use futures_util::{Stream, StreamExt as _};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::lease::now;
use crate::names::{QueueName, TurnName};
use crate::queue_error;
use crate::turn_queue::TurnQueue;
use toolq_core::exit::CommandError;
use toolq_core::json::expect_json;

/// The time over which answered turns are counted.
const RATE_WINDOW: Duration = Duration::from_mins(1);
/// How long to wait for workers that answer.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// What a worker says about itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WorkerReport {
    /// The name of its machine.
    pub host: String,
    /// Its process.
    pub pid: u32,
    /// The turn that it has.
    pub turn: Option<String>,
    /// How many turns it has answered.
    pub answered: u64,
    /// How many of them in the last minute, or since it began.
    pub recently: usize,
    /// Over how many seconds these are counted.
    pub seconds: u64,
}

impl WorkerReport {
    /// Returns how many turns it answers in a second.
    pub(crate) fn rate(&self) -> f64 {
        let answered = u32::try_from(self.recently).unwrap_or(u32::MAX);
        let seconds = u32::try_from(self.seconds).unwrap_or(u32::MAX);
        f64::from(answered) / f64::from(seconds)
    }
}

/// What a worker counts.
struct WorkerCounts {
    host: String,
    begin: Duration,
    turn: Option<String>,
    answered: u64,
    /// When it has answered turns.
    recent: VecDeque<Duration>,
}

/// A worker that answers the roll call until this is dropped.
pub(super) struct Presence {
    counts: Arc<Mutex<WorkerCounts>>,
    answering: JoinHandle<()>,
}

impl Presence {
    /// Answers from now on, on this runtime.
    ///
    /// # Errors
    /// The connection is closed.
    pub(super) async fn announce(
        queue: &TurnQueue,
        runtime: &Handle,
    ) -> Result<Self, CommandError> {
        let counts = Arc::new(Mutex::new(WorkerCounts {
            host: read_host_name(),
            begin: now(),
            turn: None,
            answered: 0,
            recent: VecDeque::new(),
        }));
        let client = queue.jetstream.client();
        let questions = client.subscribe(queue.name.roll_call()).await;
        let mut questions = questions
            .map_err(|error| queue_error("workers can't be asked about themselves", error))?;
        let answers = Arc::clone(&counts);
        let answering = runtime.spawn(async move {
            while let Some(question) = questions.next().await {
                let report = lock(&answers).report();
                let report = expect_json(serde_json::to_vec(&report));
                if let Some(reply) = question.reply {
                    let _ = client.publish(reply, report.into()).await;
                }
            }
        });
        Ok(Self { counts, answering })
    }

    pub(super) fn begin_turn(&self, turn: &TurnName) {
        lock(&self.counts).turn = Some(turn.short());
    }

    pub(super) fn end_turn(&self, is_answered: bool) {
        let mut counts = lock(&self.counts);
        counts.turn = None;
        if is_answered {
            counts.answered += 1;
            counts.recent.push_back(now());
            counts.forget_old();
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.answering.abort();
    }
}

impl WorkerCounts {
    fn forget_old(&mut self) {
        let since = now().saturating_sub(RATE_WINDOW);
        while self.recent.front().is_some_and(|time| *time < since) {
            self.recent.pop_front();
        }
    }

    fn report(&mut self) -> WorkerReport {
        self.forget_old();
        let age = now().saturating_sub(self.begin);
        WorkerReport {
            host: self.host.clone(),
            pid: std::process::id(),
            turn: self.turn.clone(),
            answered: self.answered,
            recently: self.recent.len(),
            seconds: age.min(RATE_WINDOW).as_secs().max(1),
        }
    }
}

/// Returns the name of this machine, or nothing where the system doesn't show it in a file.
fn read_host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.unwrap_or_default().trim().to_owned()
}

/// A panic elsewhere doesn't make counts wrong.
fn lock(counts: &Mutex<WorkerCounts>) -> std::sync::MutexGuard<'_, WorkerCounts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks the workers of a queue about themselves. Those that are stopped or cut off don't answer.
///
/// # Errors
/// The connection is closed.
pub(super) async fn call_roll(
    client: &Client,
    queue: &QueueName,
) -> Result<Vec<WorkerReport>, String> {
    let inbox = client.new_inbox();
    let mut answers = client
        .subscribe(inbox.clone())
        .await
        .map_err(|error| error.to_string())?;
    let asked = client.publish_with_reply(queue.roll_call(), inbox, bytes::Bytes::new());
    asked.await.map_err(|error| error.to_string())?;
    let mut workers = Vec::new();
    let _ = timeout(ANSWER_TIME, add_reports(&mut workers, &mut answers)).await;
    workers.sort_by(|a, b| (&a.host, a.pid).cmp(&(&b.host, b.pid)));
    Ok(workers)
}

/// Adds the reports of workers until no more can come. An answer that isn't a report, such as that of another version of toolq, is
/// left out.
async fn add_reports(
    workers: &mut Vec<WorkerReport>,
    answers: &mut (impl Stream<Item = Message> + Unpin),
) {
    while let Some(answer) = answers.next().await {
        // A server that knows of no workers says so.
        if answer.status == Some(StatusCode::NO_RESPONDERS) {
            break;
        }
        workers.extend(serde_json::from_slice::<WorkerReport>(&answer.payload).ok());
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, stream};

    use super::*;

    fn answer(payload: String, status: Option<StatusCode>) -> Message {
        Message {
            subject: "inbox".into(),
            reply: None,
            length: payload.len(),
            payload: payload.into(),
            headers: None,
            status,
            description: None,
        }
    }

    #[test]
    fn an_answer_that_is_no_report_hides_no_worker() {
        let report = WorkerReport {
            host: "a".to_owned(),
            pid: 1,
            turn: None,
            answered: 0,
            recently: 0,
            seconds: 1,
        };
        let report = serde_json::to_string(&report).unwrap();
        let answers = [
            answer("{\"host\": 1}".to_owned(), None),
            answer(report, None),
            answer(String::new(), Some(StatusCode::NO_RESPONDERS)),
        ];
        let mut answers = stream::iter(answers).chain(stream::pending());
        let mut workers = Vec::new();
        let added = add_reports(&mut workers, &mut answers).now_or_never();
        assert_eq!(added, Some(()), "the server's word ends it");
        assert_eq!(workers.len(), 1);
    }
}
