//! What is known of a queue, and what people have to look at: calls in doubt, and turns that aren't run anymore.

use std::fmt::Write as _;

use async_nats::Client;
use async_nats::jetstream::consumer::PullConsumer;
use serde::{Deserialize, Serialize};

use crate::connection::QueueSession;
use crate::consumer::call_roll;
use crate::names::TurnName;
use crate::queue_error;
use crate::turn_queue::TurnQueue;
use toolq_core::exit::CommandError;
use toolq_core::json::expect_json;

/// How many calls in doubt the text names.
const MAX_NAMED_CALLS: usize = 10;

/// A queue at a moment.
#[derive(Debug, Serialize)]
pub struct QueueStatus {
    pub(crate) queue: String,
    /// Turns that no worker has taken yet.
    pub(crate) waiting: u64,
    /// Turns that are with workers.
    pub(crate) running: usize,
    /// The turns that workers say they have, for `cancel`.
    turns: Vec<String>,
    /// Turns that were given to another worker and have no answer yet.
    redelivered: usize,
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
        for turn in &self.turns {
            line("", turn.clone());
        }
        line("redelivered", self.redelivered.to_string());
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
        text.trim_end().to_owned()
    }
}

impl QueueSession {
    /// Returns what waits, what runs, and what is in doubt.
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
        doubts.into_iter().map(move |call| CallOfTurn {
            turn: turn.clone(),
            call,
        })
    });
    let mut turns = call_roll(client, &queue.name).await.map_err(unreadable)?;
    turns.retain(|turn| !turn.is_empty());
    Ok(QueueStatus {
        queue: queue.name.to_string(),
        waiting,
        running: consumer.map_or(0, |consumer| consumer.num_ack_pending),
        redelivered: consumer.map_or(0, |consumer| consumer.num_redelivered),
        turns,
        in_doubt: in_doubt.collect(),
        dead: list_dead_turns(queue).await.map_err(unreadable)?.len(),
        messages: info.state.messages,
        bytes: info.state.bytes,
        object_bytes: queue.object_bytes().await.map_err(unreadable)?,
        replicas: info.config.num_replicas,
    })
}

impl QueueSession {
    /// Removes the queue, with all turns, logs, and answers. Returns how many bytes that were.
    ///
    /// # Errors
    /// There is no such queue, turns have no answer yet and this isn't forced, or the server refuses.
    pub fn purge(self, is_forced: bool) -> Result<u64, CommandError> {
        self.run(async |queue, session| {
            let status = read_status(queue, &session.client).await?;
            let open = status.waiting + status.running as u64;
            if open > 0 && !is_forced {
                let message = format!(
                    "turns of the queue {} without an answer: {open}",
                    queue.name
                );
                return Err(CommandError::usage(message).with_hint("`--force` removes them, too"));
            }
            queue.remove().await?;
            Ok(status.bytes + status.object_bytes)
        })
    }
}

// What people have to look at: calls in doubt, and turns that aren't run anymore.

/// A call that may have done its work and has no result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CallInDoubt {
    /// Its id, as the model gave it.
    pub id: String,
    /// The name of its tool.
    pub tool: String,
}

/// A turn that isn't run anymore.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DeadTurn {
    /// Why.
    pub reason: String,
    /// The path of its input as it was given.
    pub input: Option<String>,
}

/// Lists the turns with calls in doubt, in the order in which that became known.
pub(crate) async fn list_doubts(
    queue: &TurnQueue,
) -> Result<Vec<(TurnName, Vec<CallInDoubt>)>, String> {
    let mut doubts = list_facts::<Vec<CallInDoubt>>(queue, &queue.name.doubts()).await?;
    doubts.retain(|(_, doubts)| !doubts.is_empty());
    Ok(doubts)
}

/// Lists the turns that aren't run anymore, in the order in which that became known.
pub(crate) async fn list_dead_turns(
    queue: &TurnQueue,
) -> Result<Vec<(TurnName, DeadTurn)>, String> {
    list_facts(queue, &queue.name.dead_turns()).await
}

async fn list_facts<T: for<'de> Deserialize<'de>>(
    queue: &TurnQueue,
    subjects: &str,
) -> Result<Vec<(TurnName, T)>, String> {
    let mut facts = Vec::new();
    let mut from = 1;
    while let Some(message) = queue.next_message(subjects, from).await? {
        from = message.sequence + 1;
        let fact = serde_json::from_slice(&message.payload).map_err(|error| error.to_string())?;
        facts.extend(TurnName::of_subject(&message.subject).map(|turn| (turn, fact)));
    }
    Ok(facts)
}

impl QueueSession {
    /// Returns a line for each turn that isn't run anymore.
    ///
    /// # Errors
    /// There is no such queue, or the server doesn't answer.
    pub fn dead_turns(self) -> Result<Vec<String>, CommandError> {
        let dead = self.run(async |queue, _| {
            let dead = list_dead_turns(queue).await;
            let unreadable =
                |why| queue_error(&format!("the queue {} can't be read", queue.name), why);
            dead.map_err(unreadable)
        })?;
        let lines = dead.into_iter().map(|(turn, dead)| {
            let input = dead.input.as_deref().unwrap_or("-");
            format!(
                "{}  {} of {input}: {}",
                turn.short(),
                turn.number,
                dead.reason
            )
        });
        Ok(lines.collect())
    }
}
