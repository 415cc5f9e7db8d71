//! Time that stands still while toolq is stopped, so that nothing runs out meanwhile.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{self, Instant};

/// A clock that can be paused. Clones show the same time.
#[derive(Debug, Clone)]
pub(crate) struct Stopwatch {
    begun: Instant,
    pace: Arc<watch::Sender<Pace>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Pace {
    /// The time of all pauses that are over.
    lost: Duration,
    /// The beginning of the present one.
    paused: Option<Instant>,
}

impl Stopwatch {
    /// A clock that begins to run now.
    pub(crate) fn start() -> Self {
        Self {
            begun: Instant::now(),
            pace: Arc::default(),
        }
    }

    /// The time since its start, without pauses.
    pub(crate) fn now(&self) -> Duration {
        let Pace { lost, paused } = *self.pace.borrow();
        let now = paused.unwrap_or_else(Instant::now);
        now.duration_since(self.begun).saturating_sub(lost)
    }

    pub(crate) fn pause(&self) {
        self.pace
            .send_modify(|pace| pace.paused = pace.paused.or_else(|| Some(Instant::now())));
    }

    pub(crate) fn resume(&self) {
        self.pace.send_modify(|pace| {
            let paused = pace.paused.take();
            pace.lost += paused.map_or(Duration::ZERO, |since| since.elapsed());
        });
    }

    /// Waits for `duration` of its time.
    ///
    /// A timer of the system that fires after a stop may be early by that stop. Hence the clock has the last word.
    pub(crate) async fn sleep(&self, duration: Duration) {
        let until = self.now().saturating_add(duration);
        let mut pace = self.pace.subscribe();
        loop {
            let runs = pace.borrow_and_update().paused.is_none();
            let left = until.saturating_sub(self.now());
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = time::sleep(left), if runs => {}
                // The sender is here, so that this is a change.
                _ = pace.changed() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// FAULTS 62, 71: what sleeps ten seconds of its time is not woken by the time of pauses.
    #[tokio::test(start_paused = true)]
    async fn pauses_do_not_count() {
        let watch = Stopwatch::start();
        let begun = Instant::now();
        let sleeper = watch.clone();
        let sleeping = tokio::spawn(async move { sleeper.sleep(10 * SECOND).await });
        time::sleep(4 * SECOND).await;
        for pause in [3, 3600] {
            watch.pause();
            let then = watch.now();
            time::sleep(pause * SECOND).await;
            assert_eq!(watch.now(), then);
            watch.resume();
        }
        assert!(!sleeping.is_finished());
        sleeping.await.unwrap();
        assert_eq!(begun.elapsed(), 3613 * SECOND);
        assert_eq!(watch.now(), 10 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn what_begins_in_a_pause_waits_for_its_end() {
        let watch = Stopwatch::start();
        watch.pause();
        watch.pause();
        let slept = async {
            watch.sleep(SECOND).await;
            watch.now()
        };
        let resumed = async {
            time::sleep(60 * SECOND).await;
            watch.resume();
            watch.resume();
        };
        assert_eq!(tokio::join!(slept, resumed).0, SECOND);
    }
}
