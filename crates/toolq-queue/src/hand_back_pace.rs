//! How long the turns wait that a worker handed back, and how long the worker then leaves turns to others.

use std::time::Duration;

use crate::lease;

/// How long a turn that was handed back waits for another worker.
const HAND_BACK_DELAY: Duration = Duration::from_millis(500);
/// The same for a turn that needs other tools. It doubles each time up to this, because as long as such a turn is due, the server
/// gives it out before all turns that came later.
const MAX_FOREIGN_DELAY: Duration = Duration::from_secs(8);
/// Longest time to wait with one request while turns that need other tools may come back. The server gives a turn to whichever
/// worker has waited longest, so with young requests, workers that have the tools go first.
const YOUNG_PULL_WAIT: Duration = Duration::from_millis(200);
/// Longest time that a worker leaves turns to others after it has handed one back.
const MAX_REST: Duration = Duration::from_secs(8);

/// What a worker has handed back lately.
#[derive(Debug, Default)]
pub(super) struct HandBackPace {
    /// How many turns it has handed back since it last answered one.
    handed_back: u32,
    /// Until when a turn that needs other tools may come back, by [`lease::now`].
    foreign_until: Duration,
}

impl HandBackPace {
    /// Notes that a turn was answered.
    pub(super) fn note_answer(&mut self) {
        self.handed_back = 0;
    }

    /// Notes that a turn is handed back to a queue with this `ack_wait`. Returns how long the turn waits.
    pub(super) fn note_hand_back(&mut self, ack_wait: Duration) -> Duration {
        self.handed_back = self.handed_back.saturating_add(1);
        HAND_BACK_DELAY.min(ack_wait)
    }

    /// Notes that a turn is handed back that needs other tools, after it was delivered this many times. Returns how long
    /// the turn waits.
    pub(super) fn note_foreign_hand_back(&mut self, delivered: i64) -> Duration {
        let delay = foreign_delay(delivered);
        self.foreign_until = lease::now() + delay + MAX_FOREIGN_DELAY;
        delay
    }

    /// Returns the longest time to wait with one request, which is `wait` unless a turn that needs other tools may come back.
    pub(super) fn pull_wait(&self, wait: Duration) -> Duration {
        if lease::now() < self.foreign_until {
            return wait.min(YOUNG_PULL_WAIT);
        }
        wait
    }

    /// Returns how long to leave turns to others, if the worker has just handed one back. The server gives a turn to the worker
    /// that has waited longest, so without a pause it could be the same worker each time.
    pub(super) fn rest(&self) -> Option<Duration> {
        if self.handed_back == 0 {
            return None;
        }
        let exponent = self.handed_back.min(4);
        Some((HAND_BACK_DELAY * 2_u32.pow(exponent)).min(MAX_REST))
    }
}

/// Returns how long a turn that needs other tools waits after it was delivered this many times.
fn foreign_delay(delivered: i64) -> Duration {
    let exponent = u32::try_from(delivered.clamp(1, 8) - 1).unwrap_or_default();
    (HAND_BACK_DELAY * 2_u32.pow(exponent)).min(MAX_FOREIGN_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_turns_are_due_less_and_less_often() {
        let delays = [1, 2, 3, 7, 100].map(|delivered| foreign_delay(delivered).as_millis());
        assert_eq!(delays, [500, 1_000, 2_000, 8_000, 8_000]);
    }
}
