//! The answers that are small, kept while a log is read for the first time, so that they need not be read again.

use crate::records::{Body, Record};

/// Bytes of one answer that is kept, at most: what is larger is read faster than it is asked for.
const LARGEST: usize = 4 << 10;
/// Bytes of all answers that are kept, at most.
const ROOM: usize = 8 << 20;

/// JSON by the place of its record in the file. It never has more than [`ROOM`] bytes, whatever the log has.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// One behind the other.
    text: String,
    /// Where the record stands in the file and where its content begins in the text, in this order.
    begin: Vec<(u64, usize)>,
}

impl Answers {
    /// Keeps the content of a record that stands behind those that are kept, if it has room.
    pub(crate) fn keep(&mut self, record: &Record) {
        let Body::Inline(raw) = &record.content else {
            return;
        };
        let json = raw.get();
        if json.len() <= LARGEST && self.text.len() + json.len() <= ROOM {
            self.begin.push((record.offset, self.text.len()));
            self.text.push_str(json);
        }
    }

    /// The content of the record that stands there in the file, if it was kept.
    pub(crate) fn get(&self, offset: u64) -> Option<&str> {
        let found = self
            .begin
            .binary_search_by_key(&offset, |(at, _)| *at)
            .ok()?;
        let end = self
            .begin
            .get(found + 1)
            .map_or(self.text.len(), |next| next.1);
        self.text.get(self.begin[found].1..end)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::value::RawValue;
    use uuid::Uuid;

    use super::*;

    use crate::records::Kind;

    fn keep(answers: &mut Answers, offset: u64, json: &str) {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        answers.keep(&Record {
            line: 1,
            offset,
            end: offset + 1,
            seq: 0,
            id: Uuid::nil(),
            parent: None,
            timestamp: 0,
            kind: Kind::ToolResult,
            content: Body::Inline(Cow::Borrowed(&raw)),
            metadata: Cow::Borrowed(&raw),
        });
    }

    #[test]
    fn what_is_small_is_kept_by_its_place() {
        let mut answers = Answers::default();
        let large = format!("\"{}\"", "x".repeat(LARGEST));
        for (offset, json) in [(10, "\"a\""), (20, "null"), (30, &large), (40, "[1]")] {
            keep(&mut answers, offset, json);
        }
        let found: Vec<_> = [0, 10, 20, 30, 40, 50].map(|at| answers.get(at)).into();
        let none = None;
        assert_eq!(
            found,
            [none, Some("\"a\""), Some("null"), none, Some("[1]"), none]
        );
    }

    /// Memory doesn't grow with what calls answered.
    #[test]
    fn there_is_so_much_room_and_no_more() {
        let mut answers = Answers::default();
        let json = format!("\"{}\"", "x".repeat(LARGEST - 2));
        let fit = ROOM / LARGEST;
        for offset in 0..=fit {
            keep(&mut answers, offset as u64, &json);
        }
        assert_eq!(answers.text.len(), ROOM);
        assert_eq!(answers.get(fit as u64 - 1), Some(&*json));
        assert_eq!(answers.get(fit as u64), None);
    }
}
