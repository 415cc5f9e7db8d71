//! How many tokens models used, and what they cost.

use std::collections::BTreeMap;
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
#[derive(derive_more::From)]
#[from(Usage)]
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

impl AddAssign for ReportedUsage {
    fn add_assign(&mut self, more: Self) {
        self.0 = self.0.zip(more.0).map(|(mut sum, more)| {
            sum += more;
            sum
        });
    }
}

/// Price of tokens, in millionths of a US dollar per million tokens. An integer, so that sums are exact.
pub type MicroUsd = u64;

/// Price of one model's tokens, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelPrice {
    /// Input tokens that bypass the cache.
    pub input: MicroUsd,
    /// Output tokens.
    pub output: MicroUsd,
    /// Input tokens read from the cache.
    pub cache_read: Option<MicroUsd>,
    /// Input tokens written to the cache.
    pub cache_write: Option<MicroUsd>,
}

/// 10⁻¹² US dollars: the unit of a price multiplied by a token count.
pub type PicoUsd = u128;

impl ModelPrice {
    /// Returns the cost of `usage`, or `None` if it includes tokens that have no price.
    pub fn cost(&self, usage: &Usage) -> Option<PicoUsd> {
        let parts = [
            (usage.input, Some(self.input)),
            (usage.output, Some(self.output)),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, self.cache_write),
        ];
        let mut sum = 0;
        for (tokens, price) in parts {
            if tokens > 0 {
                sum += u128::from(tokens) * u128::from(price?);
            }
        }
        Some(sum)
    }
}

/// Prices by model name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriceTable(pub BTreeMap<String, ModelPrice>);

impl PriceTable {
    /// Returns the price of `model`: the entry with exactly this name, or else the longest entry that `model` extends
    /// by a date (`claude-sonnet-4-5` covers `claude-sonnet-4-5-20250929`).
    pub fn for_model(&self, model: &str) -> Option<&ModelPrice> {
        let is_date = |rest: &str| {
            let digits = rest.strip_prefix('-').unwrap_or_default();
            digits.len() >= 6 && digits.bytes().all(|b| b.is_ascii_digit() || b == b'-')
        };
        let find_dated = || {
            self.0
                .iter()
                .filter(|(name, _)| model.strip_prefix(name.as_str()).is_some_and(is_date))
                .max_by_key(|(name, _)| name.len())
                .map(|(_, price)| price)
        };
        self.0.get(model).or_else(find_dated)
    }

    /// Returns the cost of `tokens` of `model`, or `None` if the count is unknown or some of them have no price.
    pub fn cost(&self, model: &str, tokens: &ReportedUsage) -> Option<PicoUsd> {
        let usage = tokens.0.as_ref()?;
        match self.for_model(model) {
            Some(price) => price.cost(usage),
            // Zero tokens cost nothing, even if the model has no price.
            None => (usage.total() == 0).then_some(0),
        }
    }
}

/// Formats an amount in dollars with all significant digits, such as `0.0105`.
pub fn format_usd(amount: PicoUsd) -> String {
    const PICO_PER_USD: PicoUsd = 1_000_000_000_000;
    let (whole, rest) = (amount / PICO_PER_USD, amount % PICO_PER_USD);
    format!("{whole}.{rest:012}")
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

/// Formats an amount for people, with a dollar sign and at least two decimals, such as `$12.00`.
pub fn format_dollars(amount: PicoUsd) -> String {
    let digits = format_usd(amount);
    let (whole, cents) = digits.split_once('.').unwrap_or((&digits, ""));
    format!("${whole}.{cents:0<2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_add_up_exactly() {
        let price = ModelPrice {
            input: 3_000_000,
            output: 15_000_000,
            cache_read: Some(300_000),
            cache_write: None,
        };
        let usage = Usage {
            input: 1_000,
            output: 200,
            cache_read: 10_000,
            cache_write: 0,
        };
        // $0.003 each for input, output, and cache reads.
        assert_eq!(price.cost(&usage), Some(9_000_000_000));
        let cached = Usage {
            cache_write: 1,
            ..usage
        };
        assert_eq!(price.cost(&cached), None);
        assert_eq!(price.cost(&Usage::default()), Some(0));
        assert_eq!(format_usd(9_000_000_000), "0.009");
        assert_eq!(format_usd(12_000_000_000_000), "12");
        assert_eq!(format_usd(0), "0");
        assert_eq!(format_dollars(9_000_000_000), "$0.009");
        assert_eq!(format_dollars(12_500_000_000_000), "$12.50");
        assert_eq!(format_dollars(0), "$0.00");
    }
}
