//! The time that a program has to end by itself: not counted while it is stopped.

use std::time::{Duration, Instant};

/// A time that runs out, and can be held.
#[derive(Debug)]
pub(crate) struct Grace {
    /// What was left when it went on, or was held.
    left: Duration,
    /// Since when it runs; none while it is held.
    since: Option<Instant>,
}

impl Grace {
    pub(crate) fn new(time: Duration) -> Self {
        Self {
            left: time,
            since: Some(Instant::now()),
        }
    }

    pub(crate) fn hold(&mut self) {
        self.left = self.left();
        self.since = None;
    }

    pub(crate) fn go_on(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    /// How long to wait for its end; none where it has none in sight.
    pub(crate) fn rest(&self) -> Option<Duration> {
        self.since.map(|_| self.left())
    }

    fn left(&self) -> Duration {
        let passed = self.since.map(|since| since.elapsed());
        self.left.saturating_sub(passed.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    /// FAULTS 62.
    #[test]
    fn it_does_not_run_out_while_it_is_held() {
        let mut grace = Grace::new(3 * SHORT);
        grace.hold();
        let left = grace.left();
        sleep(4 * SHORT);
        grace.hold();
        assert_eq!((grace.rest(), grace.left()), (None, left));
        grace.go_on();
        assert!(grace.rest().is_some_and(|rest| rest <= left));
        sleep(4 * SHORT);
        assert!(grace.is_over());
    }
}
