//! The time that the machine took for others. What is measured here doesn't count it: a test is late by what toolq does,
//! not by what else runs beside it.

use std::sync::{Mutex, PoisonError};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// How long the watcher sleeps. By how much longer it did, the machine was not there for it, nor for others.
const NAP: Duration = Duration::from_millis(5);

/// What was lost, and when the present nap began.
static WATCHER: Mutex<Option<(Duration, Instant)>> = Mutex::new(None);

/// A span of time, and what of it the machine was not there.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    begun: Instant,
    lost: Duration,
}

impl Span {
    /// Begins now.
    pub fn begin() -> Self {
        Self {
            begun: Instant::now(),
            lost: lost(),
        }
    }

    /// What has passed of it that the machine was there.
    pub fn passed(self) -> Duration {
        fair(self.begun.elapsed(), self.lost())
    }

    /// What the machine was not there.
    pub fn lost(self) -> Duration {
        lost().saturating_sub(self.lost)
    }
}

/// What is left of a time when the machine was not there for some of it.
pub fn fair(time: Duration, lost: Duration) -> Duration {
    time.saturating_sub(lost)
}

/// All that was lost since the watcher is there, which it is from the first question on.
fn lost() -> Duration {
    let mut watcher = WATCHER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((lost, napping)) = &*watcher {
        return *lost + napping.elapsed().saturating_sub(NAP);
    }
    *watcher = Some((Duration::ZERO, Instant::now()));
    spawn(watch);
    Duration::ZERO
}

fn watch() {
    loop {
        sleep(NAP);
        let mut watcher = WATCHER.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((lost, napping)) = &mut *watcher {
            *lost += napping.elapsed().saturating_sub(NAP);
            *napping = Instant::now();
        }
    }
}
