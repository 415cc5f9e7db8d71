//! Keeps starts as far apart as a rate says.

use std::time::Duration;

use crate::types::StartRate;

/// The least lateness that is tolerated without delaying later starts: timers have a resolution of a millisecond.
const MIN_LATENESS: Duration = Duration::from_millis(2);

/// The state of a rate.
///
/// Starts are due on a grid. One that is a little late doesn't move the grid, so the rate holds over time although no
/// timer is exact; one that is later does, so that no starts are made up for.
#[derive(Debug, Clone, Default)]
pub(crate) struct RateMeter {
    /// When the next start would be due if nothing had been saved up.
    next: Duration,
}

impl RateMeter {
    /// Returns when the next call may start.
    pub(crate) fn due_at(&self, rate: &StartRate) -> Duration {
        let saved = rate.interval() * (rate.burst.get() - 1);
        self.next.saturating_sub(saved)
    }

    /// Counts a start. `waited` says whether the call waited for it, so that it may be late.
    pub(crate) fn record_start(&mut self, rate: &StartRate, now: Duration, waited: bool) {
        let lateness = if waited {
            max_lateness(rate)
        } else {
            Duration::ZERO
        };
        self.next = self.next.max(now.saturating_sub(lateness)) + rate.interval();
    }

    /// Notes when the call of the last start really started: its start was recorded in the meantime.
    pub(crate) fn note_started(&mut self, rate: &StartRate, now: Duration) {
        let counted_from = now.saturating_sub(max_lateness(rate));
        self.next = self.next.max(counted_from + rate.interval());
    }
}

/// Returns how late a start may be without moving the grid.
fn max_lateness(rate: &StartRate) -> Duration {
    let interval = rate.interval();
    MIN_LATENESS.max(interval / 50).min(interval / 2)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::types::RatePeriod;

    fn rate(starts: u32, burst: u32) -> StartRate {
        StartRate {
            starts: NonZeroU32::new(starts).unwrap(),
            period: RatePeriod::Second,
            burst: NonZeroU32::new(burst).unwrap(),
        }
    }

    /// Starts as many calls as wait all the time, each as late as `lateness` says. Returns when they started, in
    /// milliseconds.
    fn starts(rate: StartRate, count: u64, lateness: impl Fn(u64) -> u64) -> Vec<u128> {
        let mut meter = RateMeter::default();
        let mut now = Duration::from_secs(5);
        let start = now;
        let mut starts = Vec::new();
        for call in 0..count {
            let due = meter.due_at(&rate);
            let waited = due > now;
            now = now.max(due + Duration::from_millis(lateness(call)));
            meter.record_start(&rate, now, waited);
            starts.push(now.saturating_sub(start).as_millis());
        }
        starts
    }

    #[test]
    fn starts_are_equally_far_apart() {
        assert_eq!(starts(rate(10, 1), 4, |_| 0), [0, 100, 200, 300]);
    }

    /// A timer that is a millisecond late each time doesn't slow the rate down, and nothing is made up for after a
    /// longer delay.
    #[test]
    fn lateness_does_not_add_up_and_a_delay_saves_nothing() {
        let late = starts(rate(100, 1), 1_001, |call| call % 3);
        assert!((10_000..10_003).contains(&late[1_000]), "{}", late[1_000]);
        assert!(late.windows(2).all(|pair| pair[1] - pair[0] >= 8));
        let delayed = starts(rate(10, 1), 4, |call| if call == 1 { 250 } else { 0 });
        assert_eq!(delayed, [0, 350, 448, 548]);
    }

    #[test]
    fn a_burst_is_saved_up_once() {
        assert_eq!(starts(rate(10, 3), 6, |_| 0), [0, 0, 0, 100, 200, 300]);
        let mut meter = RateMeter::default();
        let rate = rate(10, 3);
        for _ in 0..3 {
            meter.record_start(&rate, Duration::from_secs(9), false);
        }
        assert_eq!(meter.due_at(&rate), Duration::from_millis(9_100));
        assert!(meter.due_at(&rate) <= Duration::from_mins(1));
    }

    /// However fast a rate is, a start that comes late moves those after it by half an interval at least.
    #[test]
    fn lateness_is_at_most_half_of_an_interval() {
        let (mut meter, rate) = (RateMeter::default(), rate(500, 1));
        meter.note_started(&rate, Duration::from_secs(9));
        assert_eq!(meter.due_at(&rate), Duration::from_millis(9_001));
    }
}
