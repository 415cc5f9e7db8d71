//! Caches small results while a log is read for the first time, so that they don't have to be read again.

use crate::records::{Record, RecordContent};

/// Largest result that is cached, in bytes. Larger ones are read again when they are needed.
const MAX_ANSWER_BYTES: usize = 4 << 10;
/// Maximum size of all cached results, in bytes.
const MAX_CACHE_BYTES: usize = 8 << 20;

/// JSON by the offset of its record in the file. It never exceeds [`MAX_CACHE_BYTES`], however large the log is.
#[derive(Debug, Default)]
pub(crate) struct AnswerCache {
    /// The JSON texts, concatenated.
    text: String,
    /// The offset of each record in the file and of its content in `text`, in ascending order.
    index: Vec<(u64, usize)>,
}

impl AnswerCache {
    /// Caches the content of a record if there is room. Records must be inserted in file order.
    pub(crate) fn insert(&mut self, record: &Record) {
        let RecordContent::Inline(raw) = &record.content else {
            return;
        };
        let json = raw.get();
        if json.len() <= MAX_ANSWER_BYTES && self.text.len() + json.len() <= MAX_CACHE_BYTES {
            self.index.push((record.offset, self.text.len()));
            self.text.push_str(json);
        }
    }

    /// Returns the content of the record at `offset` in the file, if it was cached.
    pub(crate) fn get(&self, offset: u64) -> Option<&str> {
        let entry = self
            .index
            .binary_search_by_key(&offset, |(at, _)| *at)
            .ok()?;
        let end = self
            .index
            .get(entry + 1)
            .map_or(self.text.len(), |next| next.1);
        self.text.get(self.index[entry].1..end)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::value::RawValue;
    use uuid::Uuid;

    use super::*;

    use crate::records::RecordKind;

    fn insert_json(cache: &mut AnswerCache, offset: u64, json: &str) {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        cache.insert(&Record {
            line: 1,
            offset,
            end_offset: offset + 1,
            seq: 0,
            id: Uuid::nil(),
            parent: None,
            timestamp: 0,
            kind: RecordKind::ToolResult,
            content: RecordContent::Inline(Cow::Borrowed(&raw)),
            raw_metadata: Cow::Borrowed(&raw),
        });
    }

    #[test]
    fn small_answers_are_cached_by_offset() {
        let mut cache = AnswerCache::default();
        let large = format!("\"{}\"", "x".repeat(MAX_ANSWER_BYTES));
        for (offset, json) in [(10, "\"a\""), (20, "null"), (30, &large), (40, "[1]")] {
            insert_json(&mut cache, offset, json);
        }
        let found: Vec<_> = [0, 10, 20, 30, 40, 50].map(|at| cache.get(at)).into();
        let none = None;
        assert_eq!(
            found,
            [none, Some("\"a\""), Some("null"), none, Some("[1]"), none]
        );
    }

    /// Memory use doesn't grow with the results in the log.
    #[test]
    fn the_cache_never_exceeds_its_limit() {
        let mut cache = AnswerCache::default();
        let json = format!("\"{}\"", "x".repeat(MAX_ANSWER_BYTES - 2));
        let capacity = MAX_CACHE_BYTES / MAX_ANSWER_BYTES;
        for offset in 0..=capacity {
            insert_json(&mut cache, offset as u64, &json);
        }
        assert_eq!(cache.text.len(), MAX_CACHE_BYTES);
        assert_eq!(cache.get(capacity as u64 - 1), Some(&*json));
        assert_eq!(cache.get(capacity as u64), None);
    }
}
