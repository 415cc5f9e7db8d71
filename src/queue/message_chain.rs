//! Which messages of a subject count: each one names the one that its sender knew as the last.

use std::collections::HashSet;

use async_nats::HeaderMap;

/// The header with the sequence of the message that the sender expects to be the last of the subject.
const EXPECTED_SEQUENCE: &str = "Nats-Expected-Last-Subject-Sequence";

/// Decides which messages of a subject count, given in their order. A message counts if no earlier one expected the same
/// sequence, or if it directly follows the message that it expects.
///
/// It compares the sequences that the senders expected, and not the sequences of the messages: in the copy of a server that
/// lost count, the sequences of a whole log may be off, and it is still the log.
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
        // Two were sent after message 5. The sender of the last one knows both.
        let messages = [(0, 5), (5, 7), (5, 8), (8, 9)];
        assert_eq!(counting(&messages), [true, true, false, true]);
    }

    #[test]
    fn a_log_counts_in_a_copy_whose_sequences_are_off() {
        // Three messages of other subjects are missing before it.
        let messages = [(0, 2), (5, 4), (7, 6)];
        assert_eq!(counting(&messages), [true; 3]);
        // What is published there later, after the last one, counts as well.
        let messages = [(0, 2), (5, 4), (7, 5), (5, 9)];
        assert_eq!(counting(&messages), [true; 4]);
    }
}
