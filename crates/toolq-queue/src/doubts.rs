//! What people have to look at: calls in doubt, and turns that aren't run anymore.

use serde::{Deserialize, Serialize};

use crate::names::{QueueName, TurnName};
use crate::ordered_publishing::{PublishRefusal, publish_only};
use crate::queue_error;
use crate::session::QueueSession;
use crate::turn_queue::TurnQueue;
use toolq_core::exit::CommandError;
use toolq_core::json::expect_json;

/// A call that may have done its work and has no result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CallInDoubt {
    /// Its id, as the model gave it.
    pub id: String,
    /// The name of its tool.
    pub tool: String,
}

/// The calls of a turn that are in doubt.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TurnDoubts {
    pub calls: Vec<CallInDoubt>,
}

/// A turn that isn't run anymore.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DeadTurn {
    /// Why.
    pub reason: String,
    /// The path of its input as it was given.
    pub input: Option<String>,
}

/// What is known of a turn, in one message.
pub(super) trait TurnFact: Serialize {
    /// Returns the subject of the message.
    fn subject(turn: &TurnName, queue: &QueueName) -> String;

    /// Publishes it in place of what was known.
    async fn publish(
        &self,
        queue: &TurnQueue,
        turn: &TurnName,
        gives_up: impl FnMut() -> bool,
    ) -> Result<u64, PublishRefusal> {
        let payload = expect_json(serde_json::to_vec(self));
        let subject = Self::subject(turn, &queue.name);
        publish_only(queue, &subject, payload.into(), gives_up).await
    }
}

impl TurnFact for TurnDoubts {
    fn subject(turn: &TurnName, queue: &QueueName) -> String {
        turn.doubt_subject(queue)
    }
}

impl TurnFact for DeadTurn {
    fn subject(turn: &TurnName, queue: &QueueName) -> String {
        turn.dead_subject(queue)
    }
}

/// Lists the turns with calls in doubt, in the order in which that became known.
pub(crate) async fn list_doubts(queue: &TurnQueue) -> Result<Vec<(TurnName, TurnDoubts)>, String> {
    let mut doubts = list_facts::<TurnDoubts>(queue, &queue.name.doubts()).await?;
    doubts.retain(|(_, doubts)| !doubts.calls.is_empty());
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
