//! The hold of a worker on a turn, until another worker takes the turn over: how long it may still start calls, by its own
//! clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_nats::jetstream::{AckKind, Message};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::names::TurnName;
use crate::publishing::{PublishRefusal, RETRY_INTERVAL};
use crate::turn_queue::TurnQueue;
use toolq_core::text::to_millis;
use toolq_engine::random_task_id;

/// A clock that keeps running while the machine sleeps.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// Returns the time since the machine started, with the time that it slept.
pub(crate) fn now() -> Duration {
    let time = clock_gettime(CLOCK);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanos)
}

/// Means that the log hasn't been read yet.
const UNREAD: u64 = u64::MAX;

/// The hold of a worker on a turn, with its lease: the time until which the server won't give the turn to another worker, as
/// this machine's clock sees it.
///
/// The clock keeps running while the process is stopped or the machine sleeps, and it can't be set.
pub(super) struct TurnHolder {
    /// Names this hold in the messages with its records.
    pub id: String,
    /// How long the lease is from each request on.
    pub ack_wait: Duration,
    lease_end: AtomicU64,
    /// A call was to start after the lease.
    was_missed: AtomicBool,
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
            ack_wait,
            lease_end: AtomicU64::new(to_millis(asked + ack_wait)),
            was_missed: AtomicBool::new(false),
            read_up_to: AtomicU64::new(UNREAD),
            refusal: watch::Sender::default(),
        }
    }

    /// Extends the lease after the server has confirmed a request that was sent at `asked`. What counts is when it was sent:
    /// the server's own time begins later. A lease that is over stays so: another worker may have the turn, and the server
    /// confirms the request all the same.
    fn renew(&self, asked: Duration) {
        let end = to_millis(asked + self.ack_wait);
        let extend = |current: u64| (to_millis(now()) < current).then_some(current.max(end));
        // It is over if nothing was extended.
        let _ = self
            .lease_end
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, extend);
    }

    /// Ends the lease: the turn is another worker's.
    fn end(&self) {
        self.lease_end.store(0, Ordering::SeqCst);
    }

    /// Returns whether the turn may be another worker's by now.
    pub(super) fn is_over(&self) -> bool {
        to_millis(now()) >= self.lease_end.load(Ordering::SeqCst)
    }

    /// Returns whether a call may start: there is so much of the lease left that its program surely runs before the end. Once one
    /// may not, none may.
    pub(super) fn allows_start(&self) -> bool {
        let margin = to_millis(self.ack_wait / 10);
        if to_millis(now()) + margin >= self.lease_end.load(Ordering::SeqCst) {
            self.was_missed.store(true, Ordering::SeqCst);
        }
        !self.was_missed()
    }

    /// Returns whether a call was to start after the lease.
    pub(super) fn was_missed(&self) -> bool {
        self.was_missed.load(Ordering::SeqCst)
    }

    /// Says up to which message the log of the turn was read.
    pub(super) fn set_read_up_to(&self, sequence: u64) {
        self.read_up_to.store(sequence, Ordering::SeqCst);
    }

    /// Nothing more may be published, for this reason.
    pub(super) fn refuse(&self, refusal: PublishRefusal) {
        if refusal == PublishRefusal::Outdated {
            self.end();
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
        let interval = self.ack_wait / 3;
        let mut wait = interval;
        loop {
            sleep(wait).await;
            let asked = now();
            if self.is_over() {
                return;
            }
            let confirmed = message.double_ack_with(AckKind::Progress).await.is_ok();
            wait = match self.is_taken_over(&queue, &turn).await {
                Ok(true) => return self.refuse(PublishRefusal::Outdated),
                Ok(false) if confirmed => {
                    self.renew(asked);
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

/// The header that names the hold of the worker that published records.
pub(super) const RECORDED_BY: &str = "Toolq-Worker";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_counts_from_when_it_was_asked_for() {
        let ack_wait = Duration::from_hours(1);
        let lease = TurnHolder::new(Duration::ZERO, Duration::ZERO);
        assert!(lease.is_over());
        assert!(!TurnHolder::new(now(), ack_wait).is_over());
        let half = ack_wait / 2;
        let lease = TurnHolder::new(now().saturating_sub(half), ack_wait);
        // An older confirmation that arrives late takes nothing away.
        lease.renew(Duration::ZERO);
        assert!(!lease.is_over());
        lease.end();
        assert!(lease.is_over());
    }

    #[test]
    fn a_lease_that_is_over_is_not_revived_by_a_late_confirmation() {
        // A machine may have started just now, so the leases began with it.
        let nearly = TurnHolder::new(Duration::ZERO, now() * 20 / 19);
        assert!(!nearly.is_over() && !nearly.allows_start());
        let lease = TurnHolder::new(Duration::ZERO, now());
        assert!(lease.is_over());
        lease.renew(now());
        assert!(lease.is_over());
    }
}
