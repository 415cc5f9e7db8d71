//! Measures time without stalls of the machine, so that a test fails because toolq is slow, not because other processes
//! took the CPU.

use std::sync::{Mutex, PoisonError};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// How long the watcher sleeps. Any time that a nap takes beyond that counts as a stall.
const WATCH_INTERVAL: Duration = Duration::from_millis(5);

/// The total stalled time so far, and when the current nap began.
static WATCHER: Mutex<Option<(Duration, Instant)>> = Mutex::new(None);

/// A running measurement that knows how much of it was stalled.
#[derive(Debug, Clone, Copy)]
pub struct ActiveSpan {
    started_at: Instant,
    stalled_before: Duration,
}

impl ActiveSpan {
    /// Starts measuring now.
    pub fn begin() -> Self {
        Self {
            started_at: Instant::now(),
            stalled_before: total_stalled(),
        }
    }

    /// The time since the start, without stalls.
    pub fn active_time(self) -> Duration {
        subtract_stalls(self.started_at.elapsed(), self.stalled_time())
    }

    /// The stalled time since the start.
    pub fn stalled_time(self) -> Duration {
        total_stalled().saturating_sub(self.stalled_before)
    }
}

/// Subtracts the stalled part of a measured time.
pub fn subtract_stalls(time: Duration, stalled: Duration) -> Duration {
    time.saturating_sub(stalled)
}

/// Returns all stalled time since the watcher started. The first call starts it.
fn total_stalled() -> Duration {
    let mut watcher = WATCHER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((stalled, nap_start)) = &*watcher {
        return *stalled + nap_start.elapsed().saturating_sub(WATCH_INTERVAL);
    }
    *watcher = Some((Duration::ZERO, Instant::now()));
    spawn(watch_stalls);
    Duration::ZERO
}

fn watch_stalls() {
    loop {
        sleep(WATCH_INTERVAL);
        let mut watcher = WATCHER.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((stalled, nap_start)) = &mut *watcher {
            *stalled += nap_start.elapsed().saturating_sub(WATCH_INTERVAL);
            *nap_start = Instant::now();
        }
    }
}
