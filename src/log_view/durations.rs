//! Statistics of durations.

use serde::Serialize;

/// A collection of durations in milliseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct DurationSample(Vec<u64>);

/// The statistics of a sample, in milliseconds. All are `None` for an empty sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct DurationStats {
    /// The sum.
    #[serde(rename = "total_ms")]
    pub total: Option<u64>,
    /// The mean, rounded to tenths.
    #[serde(rename = "mean_ms")]
    pub mean: Option<f64>,
    /// The median. Percentiles use the nearest-rank method: the smallest value that at least p percent of the values
    /// don't exceed.
    #[serde(rename = "p50_ms")]
    pub p50: Option<u64>,
    /// The 95th percentile.
    #[serde(rename = "p95_ms")]
    pub p95: Option<u64>,
    /// The maximum.
    #[serde(rename = "max_ms")]
    pub max: Option<u64>,
}

impl DurationSample {
    pub(crate) fn push(&mut self, ms: u64) {
        self.0.push(ms);
    }

    pub(super) fn extend(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// Computes the statistics.
    pub(crate) fn to_stats(&self) -> DurationStats {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let Some(max) = sorted.last() else {
            return DurationStats::default();
        };
        let total = sorted.iter();
        let total = total.fold(0_u64, |total, ms| total.saturating_add(*ms));
        let rank = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100) - 1];
        DurationStats {
            total: Some(total),
            mean: Some(mean(total, sorted.len())),
            p50: Some(rank(50)),
            p95: Some(rank(95)),
            max: Some(*max),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a mean of more than 2^53 ms needs no tenths"
)]
fn mean(total: u64, count: usize) -> f64 {
    (total as f64 * 10.0 / count as f64).round() / 10.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stats_of(values: impl IntoIterator<Item = u64>) -> DurationStats {
        DurationSample(values.into_iter().collect()).to_stats()
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let numbers = |values: &[u64]| {
            let durations = stats_of(values.iter().copied());
            serde_json::to_string(&durations).unwrap()
        };
        for (values, expected) in [
            (&[][..], [None; 4]),
            (&[7], [Some(7); 4]),
            (&[40, 10, 30, 20], [Some(100), Some(20), Some(40), Some(40)]),
        ] {
            let DurationStats {
                total,
                p50,
                p95,
                max,
                ..
            } = stats_of(values.iter().copied());
            assert_eq!([total, p50, p95, max], expected, "{values:?}");
        }
        let hundred = stats_of((1..=100).rev());
        assert_eq!((hundred.p50, hundred.p95), (Some(50), Some(95)));
        assert_eq!(
            numbers(&[1, 1, 2]),
            r#"{"total_ms":4,"mean_ms":1.3,"p50_ms":1,"p95_ms":2,"max_ms":2}"#
        );
        assert_eq!(stats_of([u64::MAX, 1]).total, Some(u64::MAX));
    }

    proptest! {
        /// Checks the definition literally: the smallest value that at least p percent of the values don't exceed.
        #[test]
        fn percentiles_follow_the_nearest_rank_definition(values in prop::collection::vec(0_u64..50, 1..40)) {
            let durations = stats_of(values.clone());
            for (rank, percent) in [(durations.p50, 50), (durations.p95, 95)] {
                let rank = rank.unwrap();
                let below = |limit: u64| values.iter().filter(|value| **value <= limit).count() * 100;
                let enough = values.len() * percent;
                prop_assert!(values.contains(&rank) && below(rank) >= enough);
                prop_assert!(values.iter().all(|value| *value >= rank || below(*value) < enough));
            }
        }
    }
}
