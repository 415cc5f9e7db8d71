//! Ids of calls that differ between two runs, and which stands for which.

use std::collections::HashMap;

/// What the vendors' ids of calls begin with.
const BEGINNINGS: [&str; 7] = [
    "toolu_",
    "srvtoolu_",
    "mcptoolu_",
    "call_",
    "fc_",
    "chatcmpl-tool-",
    "toolq_",
];

/// The ids of a recording and those of today, one to one.
#[derive(Debug, Default)]
pub struct Renaming {
    today: HashMap<String, String>,
    recorded: HashMap<String, String>,
    /// Pairs of a comparison that has not ended.
    tried: Vec<(String, String)>,
}

impl Renaming {
    /// Whether today's id may stand for the recorded one. That it does is only tried until the next `keep`.
    pub(crate) fn allows(&mut self, recorded: &str, today: &str) -> bool {
        if !is_id(recorded) || !is_id(today) {
            return false;
        }
        let known = self.today.get(recorded).map(String::as_str);
        let taken = self.recorded.get(today).map(String::as_str);
        let fits = |(one, other): &(String, String)| (one == recorded) == (other == today);
        let fits = match (known, taken) {
            (None, None) => self.tried.iter().all(fits),
            (Some(known), Some(taken)) => known == today && taken == recorded,
            _ => false,
        };
        if fits {
            self.tried.push((recorded.to_owned(), today.to_owned()));
        }
        fits
    }

    /// Ends a comparison: what was tried holds from now on if the results are the same.
    pub(crate) fn keep(&mut self, same: bool) {
        for (recorded, today) in self.tried.drain(..).filter(|_| same) {
            self.today.insert(recorded.clone(), today.clone());
            self.recorded.insert(today, recorded);
        }
    }
}

/// Whether a text looks like the id of a call: words such as `call_back` have no digit.
fn is_id(text: &str) -> bool {
    let rest = BEGINNINGS.iter().find_map(|begin| text.strip_prefix(begin));
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
        let mut ids = Renaming::default();
        assert!(ids.allows("toolu_0001", "toolu_0101"));
        assert!(!ids.allows("toolu_0001", "toolu_0102"), "one for two");
        assert!(!ids.allows("toolu_0002", "toolu_0101"), "two for one");
        ids.keep(true);
        assert!(ids.allows("toolu_0001", "toolu_0101"));
        assert!(!ids.allows("toolu_0003", "toolu_0101"));
        assert!(ids.allows("call_0004", "toolu_0104"));
        ids.keep(false);
        assert!(
            ids.allows("call_0004", "toolu_0105"),
            "what differed binds nobody"
        );
        assert!(!ids.allows("call_back1x y", "call_0001"));
        assert!(!ids.allows("call_backward", "call_forward"));
    }
}
