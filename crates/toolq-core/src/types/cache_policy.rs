//! `cache`: when the result of a call answers later calls with the same input.

use std::fmt;
use std::time::Duration;

use crate::text::format_duration;

/// When the result of an earlier call answers a call with the same input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CachePolicy {
    /// How old it may be.
    pub max_age: Duration,
}

/// `cached for 10m`.
impl fmt::Display for CachePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cached for {}", format_duration(self.max_age))
    }
}
