//! Which messages of a subject count: each one names the one that its sender knew as the last.

use std::collections::HashSet;

use async_nats::HeaderMap;

/// The header with the sequence of the message that the sender expects to be the last of the subject.
const EXPECTED_SEQUENCE: &str = "Nats-Expected-Last-Subject-Sequence";

/// Tells, of the messages of a subject in their order, which ones count: of those that were sent behind the same message, the
/// first.
///
/// What their senders expected is compared, and not where they are: in the copy of a server that has lost its count, a whole
/// log may be some sequences off, and still be the log.
#[derive(Debug, Default)]
pub(super) struct MessageChain {
    expected: HashSet<u64>,
    /// The sequence of the last message, whether it counts or not.
    pub last: u64,
}

impl MessageChain {
    /// Adds the next message. Returns whether it counts.
    pub(super) fn add(&mut self, headers: &HeaderMap, sequence: u64) -> bool {
        let previous = std::mem::replace(&mut self.last, sequence);
        let Some(expected) = expected_sequence(headers) else {
            return true;
        };
        self.expected.insert(expected) || expected == previous
    }
}

/// Returns the message after which the sender wanted this one; 0 if it wanted to be the first.
pub(super) fn expected_sequence(headers: &HeaderMap) -> Option<u64> {
    headers.get(EXPECTED_SEQUENCE)?.as_str().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns which of these messages count. Each has the sequence that its sender expected, and its own.
    fn counting(messages: &[(u64, u64)]) -> Vec<bool> {
        let mut chain = MessageChain::default();
        let counts = messages.iter().map(|(expected, sequence)| {
            let mut headers = HeaderMap::new();
            headers.insert(EXPECTED_SEQUENCE, expected.to_string());
            chain.add(&headers, *sequence)
        });
        counts.collect()
    }

    #[test]
    fn of_two_messages_that_want_the_same_place_the_first_counts() {
        // Two were sent behind message 5. The last one's sender knows of both.
        let messages = [(0, 5), (5, 7), (5, 8), (8, 9)];
        assert_eq!(counting(&messages), [true, true, false, true]);
    }

    #[test]
    fn a_log_counts_in_a_copy_whose_sequences_are_off() {
        // Three messages of other subjects are missing before it.
        let messages = [(0, 2), (5, 4), (7, 6)];
        assert_eq!(counting(&messages), [true; 3]);
        // What is published there later, behind the last one, counts as well.
        let messages = [(0, 2), (5, 4), (7, 5), (5, 9)];
        assert_eq!(counting(&messages), [true; 4]);
    }
}
