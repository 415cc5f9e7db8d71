//! `once`: which calls of a tool are the same, whatever their ids.

use std::time::Duration;

/// Calls with the same values are the same call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OncePolicy {
    /// The inputs whose values count.
    pub names: Vec<Vec<String>>,
    /// Where they count: calls in another scope are others.
    pub scope: String,
    /// For how long they count, from the result on. `None` is for ever.
    pub expires: Option<Duration>,
}
