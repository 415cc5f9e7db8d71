//! The order of turns: each input lists its turns once they are stored, so that neither an interrupted `submit` nor a turn that had
//! to be sent twice changes the order of answers.

use serde::{Deserialize, Serialize};

use async_nats::HeaderMap;
use tokio::time::sleep;

use crate::names::TurnName;
use crate::ordered_publishing::{PublishRefusal, RETRY_INTERVAL, publish_after};
use crate::turn_queue::TurnQueue;
use toolq_core::json::expect_json;

/// How many turns one message lists.
pub(super) const MAX_LISTED_TURNS: usize = 256;

/// Turns whose answers are to be collected, one after another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TurnList {
    /// The numbers of the turns in their input.
    pub turns: Vec<usize>,
    /// The sequence after which their answers come. More than 0 if they are run again.
    pub after: u64,
    /// The turns of the input before this number are listed by now.
    pub listed: usize,
}

/// The last list of an input, with its sequence.
#[derive(Debug, Default)]
struct LastList {
    list: TurnList,
    sequence: u64,
}

impl LastList {
    async fn read(queue: &TurnQueue, input: &str) -> Result<Self, String> {
        let subject = queue.name.order(input);
        let Some(message) = queue.last_message(&subject).await? else {
            return Ok(Self::default());
        };
        Ok(Self {
            list: serde_json::from_slice(&message.payload).map_err(|error| error.to_string())?,
            sequence: message.sequence,
        })
    }

    /// Publishes the next list. Returns `false` if another process has published one.
    async fn publish_next(
        &self,
        queue: &TurnQueue,
        input: &str,
        list: &TurnList,
        gives_up: impl FnMut() -> bool,
    ) -> Result<bool, PublishRefusal> {
        let payload = expect_json(serde_json::to_vec(list));
        let message = (HeaderMap::new(), payload.into());
        let subject = queue.name.order(input);
        match publish_after(queue, &subject, message, self.sequence, gives_up).await {
            Ok(_) => Ok(true),
            Err(PublishRefusal::Outdated) => Ok(false),
            Err(refusal) => Err(refusal),
        }
    }
}

/// Lists turns of an input in this order. Those that are listed already are left out. All of them must be stored.
pub(super) async fn list_turns(
    queue: &TurnQueue,
    input: &str,
    numbers: &[usize],
    mut gives_up: impl FnMut() -> bool,
) -> Result<(), PublishRefusal> {
    while !numbers.is_empty() {
        let last = match LastList::read(queue, input).await {
            Ok(last) => last,
            Err(why) if gives_up() => return Err(PublishRefusal::Unconfirmed(why)),
            Err(_) => {
                sleep(RETRY_INTERVAL).await;
                continue;
            }
        };
        let new = |number: &&usize| **number >= last.list.listed;
        let turns: Vec<usize> = numbers.iter().filter(new).copied().collect();
        let Some(latest) = turns.last() else {
            return Ok(());
        };
        let list = TurnList {
            listed: latest + 1,
            turns,
            after: 0,
        };
        if last
            .publish_next(queue, input, &list, &mut gives_up)
            .await?
        {
            break;
        }
    }
    Ok(())
}

/// Lists a turn again, to be answered after the sequence `after`. Once is enough.
pub(super) async fn list_again(
    queue: &TurnQueue,
    turn: &TurnName,
    after: u64,
    mut gives_up: impl FnMut() -> bool,
) -> Result<(), PublishRefusal> {
    loop {
        let last = LastList::read(queue, &turn.input).await;
        let last = last.map_err(PublishRefusal::Unconfirmed)?;
        let list = TurnList {
            turns: vec![turn.number],
            after,
            listed: last.list.listed,
        };
        if last.list == list
            || last
                .publish_next(queue, &turn.input, &list, &mut gives_up)
                .await?
        {
            return Ok(());
        }
    }
}
