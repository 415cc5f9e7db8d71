//! Token counts.

use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Token counts, separated by price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Input tokens that bypass the cache.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Input tokens written to the cache.
    pub cache_write: u64,
}

impl Usage {
    /// Returns the tokens of all kinds.
    pub fn total(&self) -> u64 {
        let Self {
            input,
            output,
            cache_read,
            cache_write,
        } = *self;
        [output, cache_read, cache_write]
            .into_iter()
            .fold(input, u64::saturating_add)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.input = self.input.saturating_add(more.input);
        self.output = self.output.saturating_add(more.output);
        self.cache_read = self.cache_read.saturating_add(more.cache_read);
        self.cache_write = self.cache_write.saturating_add(more.cache_write);
    }
}

/// The usage of one or more responses. `None` if an API didn't report it for one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct ReportedUsage(pub Option<Usage>);

impl ReportedUsage {
    /// Returns the tokens of all kinds, or `None` if they are unknown.
    pub fn total(&self) -> Option<u64> {
        self.0.as_ref().map(Usage::total)
    }
}

/// Zero tokens, which is a known count: nothing has been requested yet.
impl Default for ReportedUsage {
    fn default() -> Self {
        Self(Some(Usage::default()))
    }
}

impl From<Usage> for ReportedUsage {
    fn from(usage: Usage) -> Self {
        Self(Some(usage))
    }
}

impl AddAssign for ReportedUsage {
    fn add_assign(&mut self, more: Self) {
        self.0 = self.0.zip(more.0).map(|(mut sum, more)| {
            sum += more;
            sum
        });
    }
}
