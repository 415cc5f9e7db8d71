//! Settles a call in doubt: what a person found out becomes a record of the turn's log, and the turn is answered again.

use std::time::Duration;

use async_nats::HeaderMap;
use bytes::Bytes;
use tokio::time::sleep;

use crate::connection::{Notices, QueueSession};
use crate::messages::ASKS_AGAIN;
use crate::names::TurnName;
use crate::publishing::{PublishRefusal, limit_repeats, publish_after, publish_only};
use crate::queue_error;
use crate::record_publisher::{StoredRecords, name_and_publish};
use crate::status::list_doubts;
use crate::turn_log::{TurnLogFile, list_again};
use crate::turn_queue::TurnQueue;
use toolq_core::exit::CommandError;
use toolq_core::os::Clock;
use toolq_log::memory::{SettleError, Settlement};
use toolq_log::record_settlement;

/// How often to start over if another process writes to the turn meanwhile.
const MAX_TRIES: usize = 5;

impl QueueSession {
    /// Records what became of the call `id`, and has its turn answered again. `turn` chooses among several. Returns the short name
    /// of the turn.
    ///
    /// # Errors
    /// No call in doubt has the id, several do, or the queue can't be used.
    pub fn resolve(
        self,
        id: &str,
        turn: Option<&str>,
        settlement: &Settlement,
    ) -> Result<String, CommandError> {
        self.run(async |queue, session| {
            let turn = find_turn_in_doubt(queue, id, turn).await?;
            resolve_in_queue(queue, &turn, id, settlement, &session.notices).await?;
            Ok(turn.short())
        })
    }
}

/// Finds the turn of a call in doubt. `turn` chooses among several.
///
/// # Errors
/// There is no such turn, or more than one.
async fn find_turn_in_doubt(
    queue: &TurnQueue,
    id: &str,
    turn: Option<&str>,
) -> Result<TurnName, CommandError> {
    let doubts = list_doubts(queue).await.map_err(unreadable)?;
    let is_asked = |name: &TurnName| turn.is_none_or(|turn| name.is_called(turn));
    let mut matching: Vec<TurnName> = doubts
        .iter()
        .filter(|(name, doubts)| is_asked(name) && doubts.iter().any(|call| call.id == id))
        .map(|(name, _)| name.clone())
        .collect();
    let Some(found) = matching.pop() else {
        let calls = doubts.iter().flat_map(|(_, doubts)| doubts);
        let ids: Vec<&str> = calls.map(|call| &*call.id).take(5).collect();
        let hint = match &ids[..] {
            [] => "no call in this queue is in doubt".to_owned(),
            ids => format!("calls in doubt: {}", ids.join(", ")),
        };
        let message = format!("the queue {} has no call {id} in doubt", queue.name);
        return Err(CommandError::usage(message).with_hint(hint));
    };
    if matching.is_empty() {
        return Ok(found);
    }
    let turns = matching.iter().chain([&found]).map(TurnName::short);
    let turns = turns.collect::<Vec<_>>().join(", ");
    let message = format!("more than one turn has a call {id} in doubt");
    Err(CommandError::usage(message).with_hint(format!("choose one with `--turn`: {turns}")))
}

/// Settles a call in doubt. If this stops in the middle, it can be done again.
///
/// # Errors
/// The call isn't in doubt, or the queue doesn't take what was found out.
async fn resolve_in_queue(
    queue: &TurnQueue,
    turn: &TurnName,
    id: &str,
    settlement: &Settlement,
    notices: &Notices,
) -> Result<(), CommandError> {
    let answer = queue.last_message(&turn.answer_subject(&queue.name)).await;
    let answer = answer.map_err(unreadable)?.ok_or_else(|| {
        CommandError::usage(format!("the turn {} isn't answered yet", turn.short()))
            .with_hint("a worker has it; try again when it is answered")
    })?;
    let mut tries = 0;
    loop {
        tries += 1;
        match record(queue, turn, id, settlement, notices).await? {
            Ok(()) => break,
            Err(PublishRefusal::Outdated) if tries < MAX_TRIES => {}
            Err(refusal) => return Err(unreadable(refusal.to_string())),
        }
    }
    let subject = turn.turn_subject(&queue.name);
    let last = queue.last_message(&subject).await.map_err(unreadable)?;
    let last = last.ok_or_else(|| unreadable("the turn is gone".to_owned()))?;
    let replaced = answer.sequence.to_string();
    let listed = list_again(queue, turn, answer.sequence, limit_repeats()).await;
    listed.map_err(|refusal| unreadable(refusal.to_string()))?;
    let asked = last.headers.get(ASKS_AGAIN);
    if asked.is_none_or(|asked| asked.as_str() != replaced) {
        let mut headers = HeaderMap::new();
        headers.insert(ASKS_AGAIN, replaced);
        let message = (headers, Bytes::new());
        match publish_after(queue, &subject, message, last.sequence, limit_repeats()).await {
            // Another process has requested the same.
            Ok(_) | Err(PublishRefusal::Outdated) => {}
            Err(refusal) => return Err(unreadable(refusal.to_string())),
        }
    }
    Ok(())
}

/// Adds what was found out to the log of the turn.
async fn record(
    queue: &TurnQueue,
    turn: &TurnName,
    id: &str,
    settlement: &Settlement,
    notices: &Notices,
) -> Result<Result<(), PublishRefusal>, CommandError> {
    let records = StoredRecords::read(queue, turn).await.map_err(unreadable)?;
    let file = TurnLogFile::restore(queue, &records).await;
    let file = file.map_err(|failure| unreadable(failure.to_string()))?;
    match record_settlement(id, &file.path(), settlement, Clock::system()) {
        Ok(()) => {}
        // An earlier attempt got this far.
        Err(SettleError::Settled { earlier, .. }) if is_same(&earlier, settlement) => {
            return Ok(Ok(()));
        }
        Err(error) => return Err(CommandError::usage(error)),
    }
    let lines = std::fs::read(file.path()).map_err(|error| unreadable(error.to_string()))?;
    let new = lines.get(records.lines.len()..).unwrap_or_default();
    if !settlement.done {
        let wait = remaining_lease(queue, turn, &records).await;
        let wait = wait.map_err(|refusal| unreadable(refusal.to_string()))?;
        if !wait.is_zero() {
            let seconds = wait.as_secs() + 1;
            notices.note(&format!(
                "waiting {seconds} s, until no worker can still start the call"
            ));
            sleep(wait).await;
        }
    }
    let subject = turn.log_subject(&queue.name);
    let new_files = file.files().take_new();
    let payload = Bytes::copy_from_slice(new);
    let message = (HeaderMap::new(), payload);
    let published = name_and_publish(queue, &subject, message, &new_files, records.last).await;
    Ok(published.map(drop))
}

/// The first finding is on record, and its turn may be answered by now.
fn is_same(earlier: &Settlement, settlement: &Settlement) -> bool {
    let finding = |of: &Settlement| (of.done, of.result.clone(), of.is_error);
    finding(earlier) == finding(settlement)
}

/// Returns how long a worker that lost the turn may still believe that it has it. By half a lease more, since the clocks of
/// several servers may differ.
async fn remaining_lease(
    queue: &TurnQueue,
    turn: &TurnName,
    records: &StoredRecords,
) -> Result<Duration, PublishRefusal> {
    let lease = records.longest_lease + records.longest_lease / 2;
    let now = server_time(queue, turn).await?;
    let elapsed = u64::try_from(now - records.last_begin).unwrap_or_default();
    Ok(lease
        .saturating_sub(Duration::from_nanos(elapsed))
        .min(lease))
}

/// Asks the server for its time: it says when it has stored a message. The one with the doubts is stored again.
async fn server_time(queue: &TurnQueue, turn: &TurnName) -> Result<i128, PublishRefusal> {
    let subject = turn.doubt_subject(&queue.name);
    let unconfirmed = PublishRefusal::Unconfirmed;
    let doubts = queue.last_message(&subject).await.map_err(unconfirmed)?;
    let payload = doubts.map(|doubts| doubts.payload).unwrap_or_default();
    publish_only(queue, &subject, payload, limit_repeats()).await?;
    let stored = queue.last_message(&subject).await.map_err(unconfirmed)?;
    Ok(stored.map_or(0, |stored| stored.time.unix_timestamp_nanos()))
}

fn unreadable(why: String) -> CommandError {
    queue_error("the call can't be settled", why)
        .with_hint("run the same command again to continue")
}
