//! Maps the call ids of a recording to those of the current run.

use std::collections::HashMap;

/// The prefixes of the vendors' call ids.
const ID_PREFIXES: [&str; 7] = [
    "toolu_",
    "srvtoolu_",
    "mcptoolu_",
    "call_",
    "fc_",
    "chatcmpl-tool-",
    "toolq_",
];

/// A one-to-one mapping between the ids of a recording and the current ones.
#[derive(Debug, Default)]
pub struct IdRenaming {
    actual_by_recorded: HashMap<String, String>,
    recorded_by_actual: HashMap<String, String>,
    /// Pairs that were added during the current comparison.
    tentative: Vec<(String, String)>,
}

impl IdRenaming {
    /// Returns whether the current id may replace the recorded one. If so, the pair is tentative until
    /// [`finish_comparison`](Self::finish_comparison).
    pub(crate) fn try_pair(&mut self, recorded: &str, actual: &str) -> bool {
        if !is_call_id(recorded) || !is_call_id(actual) {
            return false;
        }
        let current_actual = self.actual_by_recorded.get(recorded).map(String::as_str);
        let current_recorded = self.recorded_by_actual.get(actual).map(String::as_str);
        let fits = |(one, other): &(String, String)| (one == recorded) == (other == actual);
        let fits = match (current_actual, current_recorded) {
            (None, None) => self.tentative.iter().all(fits),
            (Some(current_actual), Some(current_recorded)) => {
                current_actual == actual && current_recorded == recorded
            }
            _ => false,
        };
        if fits {
            self.tentative
                .push((recorded.to_owned(), actual.to_owned()));
        }
        fits
    }

    /// Ends a comparison. Its tentative pairs are kept if the results match, and dropped otherwise.
    pub(crate) fn finish_comparison(&mut self, is_match: bool) {
        for (recorded, actual) in self.tentative.drain(..).filter(|_| is_match) {
            self.actual_by_recorded
                .insert(recorded.clone(), actual.clone());
            self.recorded_by_actual.insert(actual, recorded);
        }
    }
}

/// Returns whether a text looks like a call id. Requires a digit, to exclude words such as `call_back`.
fn is_call_id(text: &str) -> bool {
    let rest = ID_PREFIXES
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix));
    rest.is_some_and(|rest| {
        rest.len() >= 4
            && rest.contains(|c: char| c.is_ascii_digit())
            && rest
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renaming_is_one_to_one() {
        let mut ids = IdRenaming::default();
        assert!(ids.try_pair("toolu_0001", "toolu_0101"));
        assert!(!ids.try_pair("toolu_0001", "toolu_0102"), "one for two");
        assert!(!ids.try_pair("toolu_0002", "toolu_0101"), "two for one");
        ids.finish_comparison(true);
        assert!(ids.try_pair("toolu_0001", "toolu_0101"));
        assert!(!ids.try_pair("toolu_0003", "toolu_0101"));
        assert!(ids.try_pair("call_0004", "toolu_0104"));
        ids.finish_comparison(false);
        assert!(
            ids.try_pair("call_0004", "toolu_0105"),
            "pairs of a failed comparison are dropped"
        );
        assert!(!ids.try_pair("call_back1x y", "call_0001"));
        assert!(!ids.try_pair("call_backward", "call_forward"));
    }
}
