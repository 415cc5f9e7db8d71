//! What a tool declares about calls that take too long or fail.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

/// Time limits of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTimeouts {
    /// Limit of one attempt.
    pub after: Duration,
    /// Time between asking a process to terminate and killing it.
    pub kill_grace: Duration,
    /// After this time, people see a notice that the call is slow.
    pub slow_after: Option<Duration>,
    /// Limit of all attempts together, including the waits between them.
    pub total: Option<Duration>,
}

/// When a failed attempt is retried, and after how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum number of attempts after the first.
    pub max_retries: u32,
    /// The failures to retry.
    pub conditions: Vec<RetryCondition>,
    /// Wait before the first retry. Doubles with each further one.
    pub initial_backoff: Duration,
    /// Maximum wait between two attempts.
    pub max_backoff: Duration,
}

/// One entry of `retry.on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryCondition {
    /// HTTP 429, or a connection or process that the system temporarily refused.
    RateLimited,
    /// Not started, not sent, connection failed, or HTTP 502, 503, 504, or 529.
    Unavailable,
    /// `timeout.after` passed.
    Timeout,
    /// `exit:N`.
    Exit(i32),
    /// `http:N`.
    Http(u16),
}

/// What a failed call does to the other calls of its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Leave the other calls alone.
    Continue,
    /// Cancel the running calls of its batch.
    CancelSiblings,
    /// Don't execute the later calls of the turn.
    Stop,
}

/// What a call in doubt does to the later calls of its turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDoubt {
    /// Don't execute them until the doubt is resolved: they may build on what isn't known to have happened.
    #[default]
    Stop,
    /// Leave them alone.
    Continue,
}
