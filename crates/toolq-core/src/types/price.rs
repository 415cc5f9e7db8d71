use std::collections::BTreeMap;

use crate::types::usage::{Tokens, Usage};

/// A price of tokens: millionths of a US dollar for a million of them, so that sums are exact.
pub type MicroUsd = u64;

/// What the tokens of one model cost, by their kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// Read.
    pub input: MicroUsd,
    /// Written.
    pub output: MicroUsd,
    /// Read from a cache.
    pub cache_read: Option<MicroUsd>,
    /// Read and put into a cache.
    pub cache_write: Option<MicroUsd>,
}

/// 10⁻¹² US dollars: what a price and a count of tokens make.
pub type PicoUsd = u128;

impl Price {
    /// What `usage` costs; none where it has tokens without a price.
    pub fn of(&self, usage: &Usage) -> Option<PicoUsd> {
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

/// What tokens cost, by the name of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prices(pub BTreeMap<String, Price>);

impl Prices {
    /// What tokens of `model` cost: the price of this name, else of the longest name that it begins with before a date
    /// (`claude-sonnet-4-5` has `claude-sonnet-4-5-20250929`).
    pub fn of(&self, model: &str) -> Option<&Price> {
        let is_date = |rest: &str| {
            let digits = rest.strip_prefix('-').unwrap_or_default();
            digits.len() >= 6 && digits.bytes().all(|b| b.is_ascii_digit() || b == b'-')
        };
        let dated = || {
            let of = self.0.iter().filter(|(name, _)| {
                let rest = model.strip_prefix(name.as_str());
                rest.is_some_and(is_date)
            });
            of.max_by_key(|(name, _)| name.len())
                .map(|(_, price)| price)
        };
        self.0.get(model).or_else(dated)
    }

    /// What `tokens` of `model` cost; none where some have no price, or are not known.
    pub fn cost(&self, model: &str, tokens: &Tokens) -> Option<PicoUsd> {
        let usage = tokens.0.as_ref()?;
        match self.of(model) {
            Some(price) => price.of(usage),
            // Nothing costs nothing, whoever answered.
            None => (usage.total() == 0).then_some(0),
        }
    }
}

/// An amount in dollars, every digit of it: `0.0105`.
pub fn usd(amount: PicoUsd) -> String {
    const ONE: PicoUsd = 1_000_000_000_000;
    let (whole, rest) = (amount / ONE, amount % ONE);
    let digits = format!("{whole}.{rest:012}");
    digits
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

/// The same for people: with its sign, and cents even where there are none. `$12.00`.
pub fn dollars(amount: PicoUsd) -> String {
    let digits = usd(amount);
    let (whole, cents) = digits.split_once('.').unwrap_or((&digits, ""));
    format!("${whole}.{cents:0<2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cents_add_up() {
        let price = Price {
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
        // 0.003 and 0.003 and 0.003 dollars.
        assert_eq!(price.of(&usage), Some(9_000_000_000));
        let cached = Usage {
            cache_write: 1,
            ..usage
        };
        assert_eq!(price.of(&cached), None);
        assert_eq!(price.of(&Usage::default()), Some(0));
        assert_eq!(usd(9_000_000_000), "0.009");
        assert_eq!(usd(12_000_000_000_000), "12");
        assert_eq!(usd(0), "0");
        assert_eq!(dollars(9_000_000_000), "$0.009");
        assert_eq!(dollars(12_500_000_000_000), "$12.50");
        assert_eq!(dollars(0), "$0.00");
    }
}
