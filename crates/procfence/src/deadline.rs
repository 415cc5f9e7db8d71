//! The grace period of a program, which is paused while the program is stopped.

use std::time::{Duration, Instant};

/// A deadline that can be paused.
#[derive(Debug)]
pub(crate) struct PausableDeadline {
    /// Time that was left at `running_since`, or when it was paused.
    remaining: Duration,
    /// `None` while it is paused.
    running_since: Option<Instant>,
}

impl PausableDeadline {
    pub(crate) fn new(duration: Duration) -> Self {
        Self {
            remaining: duration,
            running_since: Some(Instant::now()),
        }
    }

    pub(crate) fn pause(&mut self) {
        self.remaining = self.remaining();
        self.running_since = None;
    }

    pub(crate) fn resume(&mut self) {
        self.running_since.get_or_insert_with(Instant::now);
    }

    pub(crate) fn is_expired(&self) -> bool {
        self.remaining().is_zero()
    }

    /// Returns how long to wait for it to expire; `None` while it is paused.
    pub(crate) fn poll_timeout(&self) -> Option<Duration> {
        self.running_since.map(|_| self.remaining())
    }

    fn remaining(&self) -> Duration {
        let elapsed = self.running_since.map(|since| since.elapsed());
        self.remaining.saturating_sub(elapsed.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use super::*;

    const TICK: Duration = Duration::from_millis(20);

    /// While toolq is suspended with Ctrl-Z, no timeout or grace period runs.
    #[test]
    fn a_paused_deadline_does_not_run_out() {
        let mut deadline = PausableDeadline::new(3 * TICK);
        deadline.pause();
        let remaining = deadline.remaining();
        sleep(4 * TICK);
        deadline.pause();
        assert_eq!(
            (deadline.poll_timeout(), deadline.remaining()),
            (None, remaining)
        );
        deadline.resume();
        assert!(
            deadline
                .poll_timeout()
                .is_some_and(|rest| rest <= remaining)
        );
        sleep(4 * TICK);
        assert!(deadline.is_expired());
    }
}
