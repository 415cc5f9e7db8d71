//! The current time.

use std::fmt;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A source of the current time. Tests pass their own.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// Returns a clock that starts at the current system time and then follows a monotonic clock, so it never goes
    /// backward.
    pub fn system() -> Self {
        let start = SystemTime::now().duration_since(UNIX_EPOCH);
        let start = start.unwrap_or_default();
        let started_at = Instant::now();
        Self::new(move || {
            let now = start.saturating_add(started_at.elapsed());
            u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
        })
    }

    /// Creates a clock that reads the time from `read_ms`, in milliseconds since 1970.
    pub fn new(read_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(read_ms))
    }

    /// Returns milliseconds since 1970, UTC.
    pub fn now_ms(&self) -> u64 {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({} ms)", self.now_ms())
    }
}
