//! How far a call is, in the numbers of MCP: each must be greater than the last.

/// The smallest part of the work that a total is computed from.
const MIN_FRACTION: f64 = 0.001;

/// The progress of one call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallProgress {
    last: Option<f64>,
    /// What the numbers are out of, once the tool has said which part of its work is done. Until then, messages are counted.
    total: Option<f64>,
}

impl CallProgress {
    /// Returns the number for the next message, and what it is out of, if that is known. `fraction` is the part of the
    /// work that is done, from 0 to 1, if the tool says so.
    pub(crate) fn advance(&mut self, fraction: Option<f64>) -> (f64, Option<f64>) {
        if let Some(fraction) = fraction {
            self.total = self.total.or_else(|| self.choose_total(fraction));
        }
        let next = match (self.total, self.last) {
            (Some(total), None) => fraction.unwrap_or(0.0) * total,
            // A message that says nothing about the progress is still worth reading.
            (Some(total), Some(last)) => {
                let reached = fraction.map_or(last, |fraction| fraction * total);
                reached.max(last.next_up())
            }
            (None, last) => last.unwrap_or(0.0) + 1.0,
        };
        self.last = Some(next);
        (next, self.total)
    }

    /// Returns a total of which `fraction` is more than what was counted, if that isn't too little to tell.
    fn choose_total(&self, fraction: f64) -> Option<f64> {
        match self.last {
            None => Some(1.0),
            Some(counted) => (fraction >= MIN_FRACTION).then(|| (counted + 1.0) / fraction),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_always_grows() {
        for fractions in [
            [None, None, Some(0.5), None],
            [None, Some(0.0), Some(0.1), Some(0.9)],
            [Some(0.0), None, None, Some(0.3)],
            [Some(0.5), Some(0.2), None, Some(1.0)],
        ] {
            let mut progress = CallProgress::default();
            let steps = fractions.map(|fraction| progress.advance(fraction));
            assert!(steps.is_sorted_by(|one, next| one.0 < next.0), "{steps:?}");
            let mut known: Vec<_> = steps.iter().filter_map(|step| step.1).collect();
            known.dedup();
            assert!(known.len() <= 1, "{steps:?}");
        }
    }

    #[test]
    fn a_fraction_counts_also_after_messages_that_say_nothing_about_the_progress() {
        let mut progress = CallProgress::default();
        assert_eq!(progress.advance(None), (1.0, None));
        assert_eq!(progress.advance(Some(0.0)), (2.0, None));
        for fraction in [0.25, 0.5, 1.0] {
            let (reached, total) = progress.advance(Some(fraction));
            assert_eq!((reached, total), (fraction * 12.0, Some(12.0)));
        }
    }
}
