//! What is known of a queue.

use std::fmt::Write as _;
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::consumer::PullConsumer;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::connection::QueueSession;
use crate::presence::{WorkerReport, call_roll};
use crate::queue_error;
use crate::resolver::{CallInDoubt, list_dead_turns, list_doubts};
use crate::turn_queue::TurnQueue;
use toolq_core::exit::CommandError;
use toolq_core::json::expect_json;

/// How many calls in doubt the text names.
const MAX_NAMED_CALLS: usize = 10;
/// How long to wait for the server to report its configuration. Most servers don't report it to ordinary users.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// A queue at a moment.
#[derive(Debug, Serialize)]
pub struct QueueStatus {
    pub(crate) queue: String,
    /// Turns that no worker has taken yet.
    pub(crate) waiting: u64,
    /// Turns that are with workers.
    pub(crate) running: usize,
    /// Turns that were given to another worker and have no answer yet.
    redelivered: usize,
    /// The workers that answer the roll call.
    pub(crate) workers: Vec<WorkerReport>,
    /// Calls in doubt, with their turns.
    pub(crate) in_doubt: Vec<CallOfTurn>,
    /// Number of turns that aren't run anymore.
    pub(crate) dead: usize,
    /// Messages and bytes that the stream keeps.
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// Bytes of what is too large for messages.
    pub(crate) object_bytes: u64,
    /// Copies of the stream.
    pub(crate) replicas: usize,
    /// When the server writes to its disk.
    sync: SyncMode,
}

/// A call in doubt and its turn.
#[derive(Debug, Serialize)]
pub(crate) struct CallOfTurn {
    pub turn: String,
    #[serde(flatten)]
    pub call: CallInDoubt,
}

impl QueueStatus {
    /// Returns it for programs.
    pub fn json(&self) -> String {
        expect_json(serde_json::to_string(self))
    }

    /// Returns it for people, a line for each fact.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<13}{value}");
        };
        line("queue", self.queue.clone());
        line("waiting", self.waiting.to_string());
        line("running", self.running.to_string());
        line("redelivered", self.redelivered.to_string());
        let rate = self.rate();
        line(
            "workers",
            format!("{}, {rate:.1} turns/s", self.workers.len()),
        );
        for worker in &self.workers {
            let turn = worker.turn.as_deref().unwrap_or("idle");
            let answered = worker.answered;
            let worker = format!(
                "{} {}: {turn}, {answered} answered",
                worker.host, worker.pid
            );
            line("", worker);
        }
        line("in doubt", self.in_doubt.len().to_string());
        for in_doubt in self.in_doubt.iter().take(MAX_NAMED_CALLS) {
            let call = &in_doubt.call;
            line(
                "",
                format!("{} ({}) of {}", call.id, call.tool, in_doubt.turn),
            );
        }
        line("dead", self.dead.to_string());
        let QueueStatus {
            messages,
            bytes,
            replicas,
            ..
        } = self;
        let copies = if *replicas == 1 { "copy" } else { "copies" };
        line(
            "stream",
            format!("{messages} messages, {bytes} bytes, {replicas} {copies}"),
        );
        if self.object_bytes > 0 {
            line("objects", format!("{} bytes", self.object_bytes));
        }
        let sync = match self.sync {
            SyncMode::Always => "written before it is confirmed (`sync_interval: always`)",
            SyncMode::Lazy => {
                "written some time after it is confirmed: a loss of power can take it"
            }
            SyncMode::Unknown => "unknown: the server tells only its system account",
        };
        line("disk", sync.to_owned());
        text.trim_end().to_owned()
    }

    /// Returns how many turns all workers answer in a second, over the last minute.
    fn rate(&self) -> f64 {
        let rates = self.workers.iter().map(WorkerReport::rate);
        // The sum of nothing would be -0.
        rates.fold(0.0, |sum, rate| sum + rate)
    }
}

impl QueueSession {
    /// Returns what waits, what runs, the workers, and what is in doubt.
    ///
    /// # Errors
    /// There is no such queue, or the server doesn't answer.
    pub fn status(self) -> Result<QueueStatus, CommandError> {
        self.run(async |queue, session| read_status(queue, &session.client).await)
    }
}

/// Asks the server, and the workers.
///
/// # Errors
/// The server doesn't answer.
pub(crate) async fn read_status(
    queue: &TurnQueue,
    client: &Client,
) -> Result<QueueStatus, CommandError> {
    let unreadable =
        |why: String| queue_error(&format!("the queue {} can't be read", queue.name), why);
    let info = queue.stream.get_info().await;
    let info = info.map_err(|error| unreadable(error.to_string()))?;
    let consumer = queue.existing_workers().await?;
    let consumer = consumer.as_ref().map(PullConsumer::cached_info);
    let waiting = match consumer {
        Some(consumer) => consumer.num_pending,
        None => queue.count_turns().await.map_err(unreadable)?,
    };
    let doubts = list_doubts(queue).await.map_err(unreadable)?;
    let in_doubt = doubts.into_iter().flat_map(|(turn, doubts)| {
        let turn = turn.short();
        let calls = doubts.calls.into_iter();
        calls.map(move |call| CallOfTurn {
            turn: turn.clone(),
            call,
        })
    });
    Ok(QueueStatus {
        queue: queue.name.to_string(),
        waiting,
        running: consumer.map_or(0, |consumer| consumer.num_ack_pending),
        redelivered: consumer.map_or(0, |consumer| consumer.num_redelivered),
        workers: call_roll(client, &queue.name).await.map_err(unreadable)?,
        in_doubt: in_doubt.collect(),
        dead: list_dead_turns(queue).await.map_err(unreadable)?.len(),
        messages: info.state.messages,
        bytes: info.state.bytes,
        object_bytes: queue.object_bytes().await.map_err(unreadable)?,
        replicas: info.config.num_replicas,
        sync: find_sync_mode(client).await,
    })
}

/// When the server writes to its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum SyncMode {
    /// Before it confirms anything: `sync_interval: always`.
    Always,
    /// From time to time.
    Lazy,
    /// The server doesn't say.
    Unknown,
}

#[derive(Deserialize)]
struct JetStreamReply {
    data: JetStreamReport,
}

#[derive(Deserialize)]
struct JetStreamReport {
    config: JetStreamConfig,
}

#[derive(Deserialize)]
struct JetStreamConfig {
    #[serde(default)]
    sync_always: bool,
}

/// Finds out when the server writes to its disk. It reports its configuration only to users of its system account, and to
/// those of accounts that import `$SYS.REQ.SERVER.PING.JSZ` from there.
async fn find_sync_mode(client: &Client) -> SyncMode {
    let request = client.request("$SYS.REQ.SERVER.PING.JSZ", "{\"config\":true}".into());
    let Ok(Ok(reply)) = timeout(ANSWER_TIME, request).await else {
        return SyncMode::Unknown;
    };
    match serde_json::from_slice::<JetStreamReply>(&reply.payload) {
        Ok(reply) if reply.data.config.sync_always => SyncMode::Always,
        Ok(_) => SyncMode::Lazy,
        Err(_) => SyncMode::Unknown,
    }
}
