//! How far a running call is, by its tool's estimate and timeout.

use std::time::Duration;

use toolq_core::text::format_duration;
use toolq_core::types::{CheckedCall, Verdict};

/// How long a call is expected to take, and how long it may.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallPace {
    estimate: Option<Duration>,
    timeout: Duration,
}

impl CallPace {
    /// Returns `None` for a call that won't run.
    pub(crate) fn of(checked: &CheckedCall) -> Option<Self> {
        let Verdict::Accepted(accepted) = &checked.verdict else {
            return None;
        };
        Some(Self {
            estimate: accepted.tool.estimate,
            timeout: accepted.tool.timeout.after,
        })
    }

    /// Returns the estimate, until it has passed.
    fn estimate_at(self, elapsed: Duration) -> Option<Duration> {
        self.estimate.filter(|estimate| elapsed <= *estimate)
    }

    /// Says what the gauge shows, in whole seconds: `2s of about 4s`, or `5s of at most 30s` without an estimate or after it.
    pub(crate) fn label(self, elapsed: Duration) -> String {
        let passed = format_duration(Duration::from_secs(elapsed.as_secs()));
        match self.estimate_at(elapsed) {
            Some(estimate) => format!("{passed} of about {}", format_duration(estimate)),
            None => format!("{passed} of at most {}", format_duration(self.timeout)),
        }
    }

    /// Draws a bar of `columns` columns. It shows how much of the estimate has passed or, without an estimate or after it,
    /// how much of the timeout.
    pub(crate) fn draw(self, elapsed: Duration, columns: usize, is_unicode: bool) -> String {
        let estimate = self.estimate_at(elapsed);
        let whole = estimate.unwrap_or(self.timeout).as_millis().max(1);
        let filled = elapsed.as_millis() * columns as u128 / whole;
        let filled = usize::try_from(filled).unwrap_or(columns).min(columns);
        // Beyond the estimate, the scale is another one, and so are the characters.
        let (full, empty) = match (is_unicode, estimate.is_some()) {
            (true, true) => ("━", "─"),
            (true, false) => ("╍", "┄"),
            (false, true) => ("=", "-"),
            (false, false) => ("#", "."),
        };
        format!("{}{}", full.repeat(filled), empty.repeat(columns - filled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_counts_after_the_estimate() {
        let seconds = Duration::from_secs;
        let draw = |estimate: Option<u64>, elapsed| {
            let pace = CallPace {
                estimate: estimate.map(seconds),
                timeout: seconds(100),
            };
            pace.draw(seconds(elapsed), 4, false)
        };
        assert_eq!(draw(Some(8), 0), "----");
        assert_eq!(draw(Some(8), 4), "==--");
        assert_eq!(draw(Some(8), 8), "====");
        assert_eq!(draw(Some(8), 50), "##..");
        assert_eq!(draw(None, 25), "#...");
        assert_eq!(draw(None, 900), "####");
        let label = |estimate: Option<u64>, elapsed| {
            let pace = CallPace {
                estimate: estimate.map(seconds),
                timeout: seconds(100),
            };
            pace.label(seconds(elapsed))
        };
        assert_eq!(label(Some(8), 4), "4s of about 8s");
        assert_eq!(label(Some(8), 9), "9s of at most 1m 40s");
        assert_eq!(label(None, 4), "4s of at most 1m 40s");
    }
}
