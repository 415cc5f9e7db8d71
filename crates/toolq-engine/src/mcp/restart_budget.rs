//! How often a server may be started again.

use std::time::{Duration, Instant};

/// For how long a restart counts. A server that dies once an hour is started again for as long as the run lasts; one that
/// dies at each start isn't.
pub(crate) const RESTART_WINDOW: Duration = Duration::from_mins(10);

/// The restarts of a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct RestartBudget {
    /// When it was started again after it had ended by itself.
    restarts: Vec<Instant>,
}

impl RestartBudget {
    /// Counts a restart at `now`.
    ///
    /// # Errors
    /// There were already `limit` restarts within [`RESTART_WINDOW`].
    pub(crate) fn count_restart(&mut self, limit: u32, now: Instant) -> Result<(), u32> {
        self.restarts
            .retain(|restart| now.duration_since(*restart) < RESTART_WINDOW);
        let count = u32::try_from(self.restarts.len()).unwrap_or(u32::MAX);
        if count >= limit {
            return Err(count);
        }
        self.restarts.push(now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_count_for_ten_minutes() {
        let (begin, minute) = (Instant::now(), Duration::from_mins(1));
        let mut budget = RestartBudget::default();
        assert_eq!(budget.count_restart(0, begin), Err(0));
        for minutes in [0, 4] {
            assert_eq!(budget.count_restart(2, begin + minute * minutes), Ok(()));
        }
        assert_eq!(budget.count_restart(2, begin + minute * 9), Err(2));
        assert_eq!(budget.count_restart(2, begin + minute * 10), Ok(()));
        assert_eq!(budget.count_restart(2, begin + minute * 13), Err(2));
        assert_eq!(budget.count_restart(2, begin + minute * 14), Ok(()));
    }
}
