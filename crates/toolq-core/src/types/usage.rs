use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tokens, apart where they cost apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Read, and neither from a cache nor into one.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Read from a cache.
    pub cache_read: u64,
    /// Read and put into a cache.
    pub cache_write: u64,
}

impl Usage {
    /// Tokens of all kinds.
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

/// What an answer, or several, took: none where an API told nothing of one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Tokens(pub Option<Usage>);

impl Tokens {
    /// Tokens of all kinds; none where they are not known.
    pub fn total(&self) -> Option<u64> {
        self.0.as_ref().map(Usage::total)
    }
}

/// Nothing was asked yet, which is known.
impl Default for Tokens {
    fn default() -> Self {
        Self(Some(Usage::default()))
    }
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        Self(Some(usage))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, more: Self) {
        self.0 = self.0.zip(more.0).map(|(mut sum, more)| {
            sum += more;
            sum
        });
    }
}
