use super::Usage;

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
    }
}
