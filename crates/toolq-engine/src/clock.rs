//! A clock that pauses while toolq is suspended, so that no timeout expires in the meantime.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{self, Instant};

/// A clock that can be paused. Clones show the same time.
#[derive(Debug, Clone)]
pub(crate) struct PausableClock {
    started_at: Instant,
    state: Arc<watch::Sender<ClockState>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct ClockState {
    /// The total length of all finished pauses.
    total_paused: Duration,
    /// When the current pause began.
    paused_since: Option<Instant>,
}

impl PausableClock {
    /// Returns a clock that starts now.
    pub(crate) fn start() -> Self {
        Self {
            started_at: Instant::now(),
            state: Arc::default(),
        }
    }

    /// Returns the time since the start, not counting pauses.
    pub(crate) fn now(&self) -> Duration {
        let ClockState {
            total_paused,
            paused_since,
        } = *self.state.borrow();
        let now = paused_since.unwrap_or_else(Instant::now);
        now.duration_since(self.started_at)
            .saturating_sub(total_paused)
    }

    pub(crate) fn pause(&self) {
        self.state.send_modify(|state| {
            state.paused_since = state.paused_since.or_else(|| Some(Instant::now()));
        });
    }

    pub(crate) fn resume(&self) {
        self.state.send_modify(|state| {
            let paused_since = state.paused_since.take();
            state.total_paused += paused_since.map_or(Duration::ZERO, |since| since.elapsed());
        });
    }

    /// Sleeps for `duration` of this clock's time.
    ///
    /// A system timer that fires after a pause may be early by the length of that pause, so the remaining time is
    /// checked again before this returns.
    pub(crate) async fn sleep(&self, duration: Duration) {
        let deadline = self.now().saturating_add(duration);
        let mut state = self.state.subscribe();
        loop {
            let is_running = state.borrow_and_update().paused_since.is_none();
            let remaining = deadline.saturating_sub(self.now());
            if remaining.is_zero() {
                return;
            }
            tokio::select! {
                () = time::sleep(remaining), if is_running => {}
                // `self` holds the sender, so this is always a change, never an error.
                _ = state.changed() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Time spent in pauses doesn't wake a sleeper early.
    #[tokio::test(start_paused = true)]
    async fn pauses_do_not_count() {
        let clock = PausableClock::start();
        let started_at = Instant::now();
        let sleeper = clock.clone();
        let sleeping = tokio::spawn(async move { sleeper.sleep(10 * SECOND).await });
        time::sleep(4 * SECOND).await;
        for pause in [3, 3600] {
            clock.pause();
            let then = clock.now();
            time::sleep(pause * SECOND).await;
            assert_eq!(clock.now(), then);
            clock.resume();
        }
        assert!(!sleeping.is_finished());
        sleeping.await.unwrap();
        assert_eq!(started_at.elapsed(), 3613 * SECOND);
        assert_eq!(clock.now(), 10 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleep_begun_in_a_pause_waits_for_its_end() {
        let clock = PausableClock::start();
        clock.pause();
        clock.pause();
        let sleeper = async {
            clock.sleep(SECOND).await;
            clock.now()
        };
        let resumer = async {
            time::sleep(60 * SECOND).await;
            clock.resume();
            clock.resume();
        };
        assert_eq!(tokio::join!(sleeper, resumer).0, SECOND);
    }
}
