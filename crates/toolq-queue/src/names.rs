//! The names of a queue's stream, consumer, and subjects.

use std::str::FromStr;

/// Longest name of a queue.
const MAX_NAME_BYTES: usize = 64;

/// What there are subjects for in each turn.
const KINDS: [&str; 5] = ["turn", "log", "answer", "doubt", "dead"];

/// The name of a queue, as it is part of a stream's name and of subjects.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
pub(crate) struct QueueName(String);

impl FromStr for QueueName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(is_valid) {
            return Err(format!(
                "must have 1 to {MAX_NAME_BYTES} letters, digits, `-`, or `_`"
            ));
        }
        Ok(Self(name.to_owned()))
    }
}

impl QueueName {
    /// Returns the name of the stream.
    pub(super) fn stream(&self) -> String {
        format!("toolq-{}", self.0)
    }

    /// Returns the subjects that the stream keeps.
    pub(super) fn stream_subjects(&self) -> Vec<String> {
        let of_turns = KINDS.map(|kind| self.all(kind));
        let others = [self.order("*"), self.position()];
        of_turns.into_iter().chain(others).collect()
    }

    /// Returns the name of the bucket with what is too large for a message.
    pub(super) fn bucket(&self) -> String {
        self.stream()
    }

    /// Returns the subjects of all turns, without their logs and answers.
    pub(super) fn turns(&self) -> String {
        self.all("turn")
    }

    /// Returns the subjects of what is known of calls in doubt.
    pub(super) fn doubts(&self) -> String {
        self.all("doubt")
    }

    /// Returns the subjects of turns that aren't run anymore.
    pub(super) fn dead_turns(&self) -> String {
        self.all("dead")
    }

    /// Returns the subjects of this kind of all turns with this number in their input.
    pub(super) fn all_of_number(&self, kind: &str, number: &str) -> String {
        format!("toolq.{}.{kind}.*.{number}", self.0)
    }

    /// Returns the subject that lists the turns of an input in their order. `*` matches all inputs.
    pub(super) fn order(&self, input: &str) -> String {
        format!("toolq.{}.order.{input}", self.0)
    }

    /// Returns the subject of the roll call, to which all workers reply. The stream doesn't keep its messages.
    pub(super) fn roll_call(&self) -> String {
        format!("toolq.{}.workers", self.0)
    }

    /// Returns the subject that announces when there is something to collect. The stream doesn't keep its messages.
    pub(super) fn news(&self) -> String {
        format!("toolq.{}.news", self.0)
    }

    /// Returns the subject that says how far the answers were collected.
    pub(super) fn position(&self) -> String {
        format!("toolq.{}.collected", self.0)
    }

    fn all(&self, kind: &str) -> String {
        format!("toolq.{}.{kind}.*.*", self.0)
    }
}

/// The name of a turn: the digest of its input, and its number there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, derive_more::Display)]
#[display("{input}.{number}")]
pub(crate) struct TurnName {
    /// SHA-256 in hexadecimal.
    pub input: String,
    pub number: usize,
}

impl TurnName {
    /// Returns the turn that a subject belongs to.
    pub(super) fn of_subject(subject: &str) -> Option<Self> {
        let mut parts = subject.rsplit('.');
        let number = parts.next()?.parse().ok()?;
        let input = parts.next()?;
        let is_digest = input.len() == 64 && input.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_digest.then(|| Self {
            input: input.to_owned(),
            number,
        })
    }

    /// Returns the subject of the turn itself.
    pub(super) fn turn_subject(&self, queue: &QueueName) -> String {
        format!("toolq.{queue}.turn.{self}")
    }

    /// Returns the subject of its log.
    pub(super) fn log_subject(&self, queue: &QueueName) -> String {
        format!("toolq.{queue}.log.{self}")
    }

    /// Returns the subject of its answer.
    pub(super) fn answer_subject(&self, queue: &QueueName) -> String {
        format!("toolq.{queue}.answer.{self}")
    }

    /// Returns the subject of its calls in doubt.
    pub(super) fn doubt_subject(&self, queue: &QueueName) -> String {
        format!("toolq.{queue}.doubt.{self}")
    }

    /// Returns the subject that says why it isn't run anymore.
    pub(super) fn dead_subject(&self, queue: &QueueName) -> String {
        format!("toolq.{queue}.dead.{self}")
    }

    /// Returns whether people may call it `name`: in whole, or by the beginning of the digest.
    pub(super) fn is_called(&self, name: &str) -> bool {
        let Some((input, number)) = name.rsplit_once('.') else {
            return false;
        };
        input.len() >= 6 && self.input.starts_with(input) && self.number.to_string() == number
    }

    /// Returns a form for people: the beginning of the digest is enough to tell inputs apart.
    pub(crate) fn short(&self) -> String {
        let input = self.input.get(..12).unwrap_or(&self.input);
        format!("{input}.{}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_name_is_one_part_of_a_subject() {
        for name in ["jobs", "a-b_C9"] {
            assert_eq!(name.parse::<QueueName>().unwrap().to_string(), name);
        }
        for name in ["", "a.b", "a b", "*", ">", "ä", &"x".repeat(65)] {
            assert!(name.parse::<QueueName>().is_err(), "{name}");
        }
    }

    #[test]
    fn a_subject_names_its_turn() {
        let queue: QueueName = "jobs".parse().unwrap();
        let turn = TurnName {
            input: "ab".repeat(32),
            number: 7,
        };
        for subject in [turn.turn_subject(&queue), turn.log_subject(&queue)] {
            assert_eq!(TurnName::of_subject(&subject), Some(turn.clone()));
        }
        assert_eq!(TurnName::of_subject("toolq.jobs.collected"), None);
    }

    #[test]
    fn people_may_name_a_turn_by_the_beginning_of_its_digest() {
        let turn = TurnName {
            input: "ab".repeat(32),
            number: 7,
        };
        for name in [turn.short(), turn.to_string(), "ababab.7".to_owned()] {
            assert!(turn.is_called(&name), "{name}");
        }
        for name in ["ababab.8", "ab.7", "bababa.7", "ababab", ""] {
            assert!(!turn.is_called(name), "{name}");
        }
    }
}
