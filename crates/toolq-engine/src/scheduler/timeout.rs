//! The timeout of one attempt.

use std::time::Duration;

/// How long an attempt may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptTimeout {
    /// The time allowed, from the start of the attempt.
    pub(crate) duration: Duration,
    /// The limit in tools.yaml that this comes from.
    pub(crate) configured: Duration,
}
