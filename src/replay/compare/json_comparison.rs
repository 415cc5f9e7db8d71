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
    pub(crate) fn compare_values(&mut self, recorded: JsonText, current: JsonText) {
        if recorded.get() == current.get()
            || self.is_ignored()
            || self.mismatches.len() >= MAX_MISMATCHES
        {
            return;
        }
        let same_kind = recorded.kind() == current.kind();
        if !same_kind || self.path.len() >= MAX_DEPTH {
            return self.add_mismatch(Some(recorded), Some(current));
        }
        match recorded.kind() {
            JsonKind::Object => self.compare_objects(recorded, current),
            JsonKind::Array => self.compare_arrays(recorded, current),
            JsonKind::String => self.compare_strings(recorded, current),
            JsonKind::Number => self.compare_numbers(recorded, current),
            _ if self.compares_shape_only() => {}
            _ => self.add_mismatch(Some(recorded), Some(current)),
        }
    }

    /// Compares two texts, as JSON if both are JSON documents. Returns false if they differ as texts; differences of
    /// JSON documents are added to the mismatches instead.
    pub(crate) fn compare_texts(&mut self, recorded: &str, current: &str) -> bool {
        if recorded == current {
            return true;
        }
        match (parse_document(recorded), parse_document(current)) {
            (Some(recorded), Some(current)) => {
                self.compare_values(recorded, current);
                true
            }
            (None, None) if self.compares_shape_only() => true,
            (None, None) => {
                self.rules.normalize(recorded) == self.rules.normalize(current)
                    || self.are_near_numbers(recorded, current)
                    || self.rules.rename_ids && self.renaming.try_pair(recorded, current)
            }
            _ => false,
        }
    }

    fn compare_objects(&mut self, recorded: JsonText, current: JsonText) {
        let objects = (recorded.object(), current.object());
        let (Some(recorded_object), Some(current_object)) = objects else {
            return self.add_mismatch(Some(recorded), Some(current));
        };
        let has_duplicates = |object: &ParsedObject| object.duplicate_key().is_some();
        if has_duplicates(&recorded_object) || has_duplicates(&current_object) {
            return self.add_mismatch(Some(recorded), Some(current));
        }
        let current_by_key = index_by_key(&current_object);
        for (key, recorded) in recorded_object.members() {
            self.path.push(key.to_string());
            match current_by_key.get(&**key) {
                Some(current) => self.compare_values(*recorded, *current),
                None => self.add_mismatch(Some(*recorded), None),
            }
            self.path.pop();
        }
        let recorded_by_key = index_by_key(&recorded_object);
        for (key, current) in current_object.members() {
            if !recorded_by_key.contains_key(&**key) {
                self.path.push(key.to_string());
                self.add_mismatch(None, Some(*current));
                self.path.pop();
            }
        }
    }

    /// Compares two arrays element by element. If only the shape is compared, each current element is compared with the
    /// recorded one at its index, or with the last one.
    fn compare_arrays(&mut self, recorded: JsonText, current: JsonText) {
        let arrays = (recorded.elements(), current.elements());
        let (Some(recorded_elements), Some(current_elements)) = arrays else {
            return self.add_mismatch(Some(recorded), Some(current));
        };
        let shape = self.compares_shape_only();
        let len = if shape {
            current_elements.len()
        } else {
            recorded_elements.len().max(current_elements.len())
        };
        let last = recorded_elements.last().filter(|_| shape);
        for index in 0..len {
            let recorded = recorded_elements.get(index).or(last);
            let current = current_elements.get(index);
            self.path.push(index.to_string());
            match (recorded, current) {
                (Some(recorded), Some(current)) => self.compare_values(*recorded, *current),
                (None, _) if shape => {}
                _ => self.add_mismatch(recorded.copied(), current.copied()),
            }
            self.path.pop();
        }
    }

    fn compare_strings(&mut self, recorded: JsonText, current: JsonText) {
        let texts = (recorded.to_text(), current.to_text());
        let (Some(recorded_text), Some(current_text)) = texts else {
            return self.add_mismatch(Some(recorded), Some(current));
        };
        if !self.compare_texts(&recorded_text, &current_text) {
            self.add_mismatch(Some(recorded), Some(current));
        }
    }

    fn compare_numbers(&mut self, recorded: JsonText, current: JsonText) {
        let (recorded_number, current_number) = (recorded.get(), current.get());
        let near = |tolerance| number::is_near(recorded_number, current_number, tolerance);
        let same = self.compares_shape_only()
            || number::is_same(recorded_number, current_number)
            || self.rules.tolerance.is_some_and(near);
        if !same {
            self.add_mismatch(Some(recorded), Some(current));
        }
    }

    /// Compares two texts as numbers, if a tolerance is given. Without one, they stay texts: `1.10` may be a version.
    fn are_near_numbers(&self, recorded: &str, current: &str) -> bool {
        let near = |tolerance| {
            number::is_number(recorded)
                && number::is_number(current)
                && number::is_near(recorded, current, tolerance)
        };
        self.rules.tolerance.is_some_and(near)
    }

    fn compares_shape_only(&self) -> bool {
        self.rules.compare == Compare::Schema
    }

    fn is_ignored(&self) -> bool {
        !self.path.is_empty() && self.rules.is_ignored(&self.path)
    }

    fn add_mismatch(&mut self, recorded: Option<JsonText>, current: Option<JsonText>) {
        if self.is_ignored() || self.mismatches.len() >= MAX_MISMATCHES {
            return;
        }
        let path = json_pointer(&self.path);
        let to_owned_json = |json: Option<JsonText>| json.map(|json| json.get().to_owned());
        self.mismatches.push(ResultMismatch {
            path,
            recorded: to_owned_json(recorded),
            current: to_owned_json(current),
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
