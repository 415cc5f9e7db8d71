//! The hold of a worker on a turn, until another worker takes the turn over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::jetstream::{AckKind, Message};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::lease::{self, Lease};
use crate::names::TurnName;
use crate::ordered_publishing::{PublishRefusal, RETRY_INTERVAL};
use crate::record_publisher::RECORDED_BY;
use crate::turn_queue::TurnQueue;
use toolq_engine::random_task_id;

/// Means that the log hasn't been read yet.
const UNREAD: u64 = u64::MAX;

/// The hold of a worker on a turn.
pub(super) struct TurnHolder {
    /// Names this hold in the messages with its records.
    pub id: String,
    pub lease: Lease,
    /// The sequence of the last message of the log that others have published.
    read_up_to: AtomicU64,
    /// Why nothing more may be published, once that is so.
    refusal: watch::Sender<Option<PublishRefusal>>,
}

impl TurnHolder {
    /// Holds a turn that was requested at `asked`.
    pub(super) fn new(asked: Duration, ack_wait: Duration) -> Self {
        Self {
            id: random_task_id(),
            lease: Lease::new(asked, ack_wait),
            read_up_to: AtomicU64::new(UNREAD),
            refusal: watch::Sender::default(),
        }
    }

    /// Says up to which message the log of the turn was read.
    pub(super) fn set_read_up_to(&self, sequence: u64) {
        self.read_up_to.store(sequence, Ordering::SeqCst);
    }

    /// Nothing more may be published, for this reason.
    pub(super) fn refuse(&self, refusal: PublishRefusal) {
        if refusal == PublishRefusal::Outdated {
            self.lease.end();
        }
        self.refusal.send_replace(Some(refusal));
    }

    /// Returns a receiver that is notified of a refusal.
    pub(super) fn watch_refusal(&self) -> watch::Receiver<Option<PublishRefusal>> {
        self.refusal.subscribe()
    }

    /// Renews the lease until it is over. Each time, it checks whether another process writes to the log: a confirmation by
    /// the server isn't enough, since it confirms progress on a turn to every worker that ever had it.
    pub(super) async fn keep(
        self: Arc<Self>,
        queue: TurnQueue,
        turn: TurnName,
        message: Arc<Message>,
    ) {
        let interval = self.lease.duration() / 3;
        let mut wait = interval;
        loop {
            sleep(wait).await;
            let asked = lease::now();
            if self.lease.is_over() {
                return;
            }
            let confirmed = message.double_ack_with(AckKind::Progress).await.is_ok();
            wait = match self.is_taken_over(&queue, &turn).await {
                Ok(true) => return self.refuse(PublishRefusal::Outdated),
                Ok(false) if confirmed => {
                    self.lease.renew(asked);
                    interval
                }
                _ => RETRY_INTERVAL.min(interval),
            };
        }
    }

    async fn is_taken_over(&self, queue: &TurnQueue, turn: &TurnName) -> Result<bool, String> {
        let last = queue.last_message(&turn.log_subject(&queue.name)).await?;
        Ok(last.is_some_and(|last| {
            let recorded_by = last.headers.get(RECORDED_BY);
            last.sequence > self.read_up_to.load(Ordering::SeqCst)
                && recorded_by.is_none_or(|id| id.as_str() != self.id)
        }))
    }
}

/// Says why a worker lost its turn.
pub(super) fn describe_loss(refusal: &PublishRefusal) -> String {
    match refusal {
        PublishRefusal::Outdated => "another worker has taken over this turn".to_owned(),
        refusal => refusal.to_string(),
    }
}
