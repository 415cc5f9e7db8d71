//! Compares two JSON values. Only parts whose text differs are parsed, one level at a time.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::de::IgnoredAny;

use crate::replay::compare::id_renaming::IdRenaming;
use crate::replay::compare::mismatch::{CompareRules, ResultMismatch};
use crate::replay::compare::number;
use toolq_core::json::{JsonKind, JsonText, ParsedObject, json_pointer};
use toolq_core::types::Compare;

/// Maximum nesting depth. Deeper values are compared as text.
const MAX_DEPTH: usize = 100;
/// Maximum number of mismatches per result.
const MAX_MISMATCHES: usize = 100;

/// A comparison in progress.
pub(crate) struct JsonComparison<'w> {
    pub(crate) rules: &'w CompareRules<'w>,
    pub(crate) renaming: &'w mut IdRenaming,
    pub(crate) mismatches: Vec<ResultMismatch>,
    path: Vec<String>,
}

impl<'w> JsonComparison<'w> {
    pub(crate) fn new(rules: &'w CompareRules<'w>, renaming: &'w mut IdRenaming) -> Self {
        Self {
            rules,
            renaming,
            mismatches: Vec::new(),
            path: Vec::new(),
        }
    }

    /// Compares two values at the current path.
    pub(crate) fn compare_values(&mut self, recorded: JsonText, actual: JsonText) {
        if recorded.get() == actual.get()
            || self.is_ignored()
            || self.mismatches.len() >= MAX_MISMATCHES
        {
            return;
        }
        let same_kind = recorded.kind() == actual.kind();
        if !same_kind || self.path.len() >= MAX_DEPTH {
            return self.add_mismatch(Some(recorded), Some(actual));
        }
        match recorded.kind() {
            JsonKind::Object => self.compare_objects(recorded, actual),
            JsonKind::Array => self.compare_arrays(recorded, actual),
            JsonKind::String => self.compare_strings(recorded, actual),
            JsonKind::Number => self.compare_numbers(recorded, actual),
            _ if self.compares_shape_only() => {}
            _ => self.add_mismatch(Some(recorded), Some(actual)),
        }
    }

    /// Compares two texts, as JSON if both are JSON documents. Returns false if they differ as texts; differences of
    /// JSON documents are added to the mismatches instead.
    pub(crate) fn compare_texts(&mut self, recorded: &str, actual: &str) -> bool {
        if recorded == actual {
            return true;
        }
        match (parse_document(recorded), parse_document(actual)) {
            (Some(recorded), Some(actual)) => {
                self.compare_values(recorded, actual);
                true
            }
            (None, None) if self.compares_shape_only() => true,
            (None, None) => {
                self.rules.normalize(recorded) == self.rules.normalize(actual)
                    || self.are_near_numbers(recorded, actual)
                    || self.rules.rename_ids && self.renaming.try_pair(recorded, actual)
            }
            _ => false,
        }
    }

    fn compare_objects(&mut self, recorded: JsonText, actual: JsonText) {
        let (Some(before), Some(after)) = (recorded.object(), actual.object()) else {
            return self.add_mismatch(Some(recorded), Some(actual));
        };
        if before.duplicate_key().is_some() || after.duplicate_key().is_some() {
            return self.add_mismatch(Some(recorded), Some(actual));
        }
        let new = index_by_key(&after);
        for (key, value) in before.members() {
            self.path.push(key.to_string());
            match new.get(&**key) {
                Some(actual) => self.compare_values(*value, *actual),
                None => self.add_mismatch(Some(*value), None),
            }
            self.path.pop();
        }
        let old = index_by_key(&before);
        for (key, value) in after.members() {
            if !old.contains_key(&**key) {
                self.path.push(key.to_string());
                self.add_mismatch(None, Some(*value));
                self.path.pop();
            }
        }
    }

    /// Compares two arrays element by element. If only the shape is compared, each current element is compared with the
    /// recorded one at its index, or with the last one.
    fn compare_arrays(&mut self, recorded: JsonText, actual: JsonText) {
        let (Some(before), Some(after)) = (recorded.elements(), actual.elements()) else {
            return self.add_mismatch(Some(recorded), Some(actual));
        };
        let shape = self.compares_shape_only();
        let len = if shape {
            after.len()
        } else {
            before.len().max(after.len())
        };
        for index in 0..len {
            let last = before.last().filter(|_| shape);
            let (old, new) = (before.get(index).or(last), after.get(index));
            self.path.push(index.to_string());
            match (old, new) {
                (Some(old), Some(new)) => self.compare_values(*old, *new),
                (None, _) if shape => {}
                (old, new) => self.add_mismatch(old.copied(), new.copied()),
            }
            self.path.pop();
        }
    }

    fn compare_strings(&mut self, recorded: JsonText, actual: JsonText) {
        let (Some(before), Some(after)) = (recorded.to_text(), actual.to_text()) else {
            return self.add_mismatch(Some(recorded), Some(actual));
        };
        if !self.compare_texts(&before, &after) {
            self.add_mismatch(Some(recorded), Some(actual));
        }
    }

    fn compare_numbers(&mut self, recorded: JsonText, actual: JsonText) {
        let (before, after) = (recorded.get(), actual.get());
        let near = |tolerance| number::is_near(before, after, tolerance);
        let same = self.compares_shape_only()
            || number::is_same(before, after)
            || self.rules.tolerance.is_some_and(near);
        if !same {
            self.add_mismatch(Some(recorded), Some(actual));
        }
    }

    /// Compares two texts as numbers, if a tolerance is given. Without one, they stay texts: `1.10` may be a version.
    fn are_near_numbers(&self, recorded: &str, actual: &str) -> bool {
        let near = |tolerance| {
            number::is_number(recorded)
                && number::is_number(actual)
                && number::is_near(recorded, actual, tolerance)
        };
        self.rules.tolerance.is_some_and(near)
    }

    fn compares_shape_only(&self) -> bool {
        self.rules.compare == Compare::Schema
    }

    fn is_ignored(&self) -> bool {
        !self.path.is_empty() && self.rules.is_ignored(&self.path)
    }

    fn add_mismatch(&mut self, recorded: Option<JsonText>, actual: Option<JsonText>) {
        if self.is_ignored() || self.mismatches.len() >= MAX_MISMATCHES {
            return;
        }
        let path = json_pointer(&self.path);
        let to_owned_json = |json: Option<JsonText>| json.map(|json| json.get().to_owned());
        self.mismatches.push(ResultMismatch {
            path,
            expected: to_owned_json(recorded),
            actual: to_owned_json(actual),
        });
    }
}

fn index_by_key<'o, 'a>(object: &'o ParsedObject<'a>) -> HashMap<&'o str, JsonText<'a>> {
    let members = object.members().iter();
    members.map(|(key, value)| (&**key, *value)).collect()
}

/// Parses a text that is a JSON array or object.
pub(crate) fn parse_document(text: &str) -> Option<JsonText<'_>> {
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    let begins = text.starts_with(['{', '[']);
    (begins && serde_json::from_str::<IgnoredAny>(text).is_ok()).then(|| JsonText::new(text))
}

/// Returns a text as a JSON string.
pub(crate) fn to_json_string(text: &str) -> Cow<'static, str> {
    serde_json::to_string(text).map_or(Cow::Borrowed("\"\""), Cow::Owned)
}
