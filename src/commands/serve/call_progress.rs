//! How far a call is, in the numbers of MCP: each must be greater than the last.

/// The progress of one call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallProgress {
    last: Option<f64>,
    /// The tool says which part of its work is done. Otherwise, its messages are counted.
    has_total: bool,
}

impl CallProgress {
    /// Returns the number for the next message, and what it is out of, if that is known. `fraction` is the part of the
    /// work that is done, from 0 to 1, if the tool says so.
    pub(crate) fn advance(&mut self, fraction: Option<f64>) -> (f64, Option<f64>) {
        self.has_total |= fraction.is_some() && self.last.is_none();
        let next = match (self.has_total, fraction, self.last) {
            (true, Some(fraction), None) => fraction,
            // A message that says nothing about the progress is still worth reading.
            (true, _, Some(last)) => fraction.unwrap_or(last).max(last.next_up()),
            (_, _, last) => last.unwrap_or(0.0) + 1.0,
        };
        self.last = Some(next);
        (next, self.has_total.then_some(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_always_grows() {
        for fractions in [
            [None, None, Some(0.5), None],
            [Some(0.0), None, None, Some(0.3)],
            [Some(0.5), Some(0.2), None, Some(1.0)],
        ] {
            let mut progress = CallProgress::default();
            let steps = fractions.map(|fraction| progress.advance(fraction));
            assert!(steps.is_sorted_by(|one, next| one.0 < next.0), "{steps:?}");
            assert!(steps.iter().all(|step| step.1 == steps[0].1), "{steps:?}");
        }
    }
}
