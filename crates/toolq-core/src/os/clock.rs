use std::fmt;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What time it is, as a value: tests pass their own.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// The system's time when toolq started, and from then on what a steady clock adds: it never goes backwards.
    pub fn system() -> Self {
        let start = SystemTime::now().duration_since(UNIX_EPOCH);
        let start = start.unwrap_or_default();
        let begun = Instant::now();
        Self::new(move || {
            let now = start.saturating_add(begun.elapsed());
            u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
        })
    }

    /// A clock of one's own: milliseconds since 1970.
    pub fn new(ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(ms))
    }

    /// Milliseconds since 1970, UTC.
    pub fn ms(&self) -> u64 {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({} ms)", self.ms())
    }
}
