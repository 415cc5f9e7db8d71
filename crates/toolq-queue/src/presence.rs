//! Which workers are running: each reports when it receives the roll call.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::{Client, Message, StatusCode};
use futures_util::{Stream, StreamExt as _};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

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

// How long a worker may still start calls of a turn, by its own clock.

/// A clock that keeps running while the machine sleeps.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// The time until which the server won't give the turn to another worker, as this machine's clock sees it. Clones share it.
///
/// The clock keeps running while the process is stopped or the machine sleeps, and it can't be set.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    ack_wait: Duration,
    end: Arc<AtomicU64>,
    /// A call was to start after it.
    was_missed: Arc<AtomicBool>,
}

impl Lease {
    /// Begins a lease that was requested at `asked`.
    pub(crate) fn new(asked: Duration, ack_wait: Duration) -> Self {
        Self {
            ack_wait,
            end: Arc::new(AtomicU64::new(as_millis(asked + ack_wait))),
            was_missed: Arc::default(),
        }
    }

    /// Extends the lease after the server has confirmed a request that was sent at `asked`. What counts is when it was sent:
    /// the server's own time begins later. A lease that is over stays so: another worker may have the turn, and the server
    /// confirms the request all the same.
    pub(crate) fn renew(&self, asked: Duration) {
        let end = as_millis(asked + self.ack_wait);
        let extend = |current: u64| (as_millis(now()) < current).then_some(current.max(end));
        // It is over if nothing was extended.
        let _ = self
            .end
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, extend);
    }

    /// Ends the lease: the turn is another worker's.
    pub(crate) fn end(&self) {
        self.end.store(0, Ordering::SeqCst);
    }

    /// Returns whether the turn may be another worker's by now.
    pub(crate) fn is_over(&self) -> bool {
        as_millis(now()) >= self.end.load(Ordering::SeqCst)
    }

    /// Returns whether a call may start: there is so much of the lease left that its program surely runs before the end. Once one
    /// may not, none may.
    pub(crate) fn allows_start(&self) -> bool {
        let margin = as_millis(self.ack_wait / 10);
        if as_millis(now()) + margin >= self.end.load(Ordering::SeqCst) {
            self.was_missed.store(true, Ordering::SeqCst);
        }
        !self.was_missed()
    }

    /// Returns whether a call was to start after the lease.
    pub(crate) fn was_missed(&self) -> bool {
        self.was_missed.load(Ordering::SeqCst)
    }

    /// Returns how long the lease is from each request on.
    pub(crate) fn duration(&self) -> Duration {
        self.ack_wait
    }
}

/// Returns the time since the machine started, with the time that it slept.
pub(crate) fn now() -> Duration {
    let time = clock_gettime(CLOCK);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanos)
}

fn as_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
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

#[cfg(test)]
mod lease_tests {
    use super::*;

    #[test]
    fn a_lease_counts_from_when_it_was_asked_for() {
        let ack_wait = Duration::from_hours(1);
        let lease = Lease::new(Duration::ZERO, Duration::ZERO);
        assert!(lease.is_over());
        assert!(!Lease::new(now(), ack_wait).is_over());
        let half = ack_wait / 2;
        let lease = Lease::new(now().saturating_sub(half), ack_wait);
        // An older confirmation that arrives late takes nothing away.
        lease.renew(Duration::ZERO);
        assert!(!lease.is_over());
        lease.end();
        assert!(lease.is_over());
    }

    #[test]
    fn a_lease_that_is_over_is_not_revived_by_a_late_confirmation() {
        // A machine may have started just now, so the leases began with it.
        let nearly = Lease::new(Duration::ZERO, now() * 20 / 19);
        assert!(!nearly.is_over() && !nearly.allows_start());
        let lease = Lease::new(Duration::ZERO, now());
        assert!(lease.is_over());
        lease.renew(now());
        assert!(lease.is_over());
    }
}
