//! Two JSON values, side by side. Only what is not the same text is opened, one level at a time.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::de::IgnoredAny;

use crate::replay::compare::mismatch::{Mismatch, Rules};
use crate::replay::compare::number;
use crate::replay::compare::renaming::Renaming;
use toolq_core::json::{Json, Object};
use toolq_core::types::Compare;

/// Values that are nested deeper are compared as text, in levels.
const DEPTH: usize = 100;
/// Mismatches of one result that are told.
const MOST: usize = 100;

/// A comparison on its way.
pub(crate) struct Walk<'w> {
    pub(crate) rules: &'w Rules<'w>,
    pub(crate) ids: &'w mut Renaming,
    pub(crate) found: Vec<Mismatch>,
    path: Vec<String>,
}

impl<'w> Walk<'w> {
    pub(crate) fn new(rules: &'w Rules<'w>, ids: &'w mut Renaming) -> Self {
        Self {
            rules,
            ids,
            found: Vec::new(),
            path: Vec::new(),
        }
    }

    /// Compares two values that stand at the present path.
    pub(crate) fn values(&mut self, recorded: Json, today: Json) {
        if recorded.get() == today.get() || self.is_ignored() || self.found.len() >= MOST {
            return;
        }
        let same_kind = recorded.kind() == today.kind();
        if !same_kind || self.path.len() >= DEPTH {
            return self.differ(Some(recorded), Some(today));
        }
        match recorded.kind() {
            "an object" => self.objects(recorded, today),
            "an array" => self.arrays(recorded, today),
            "a string" => self.strings(recorded, today),
            "a number" => self.numbers(recorded, today),
            _ if self.only_shape() => {}
            _ => self.differ(Some(recorded), Some(today)),
        }
    }

    /// Compares two texts; those that are JSON as that. False where they differ as texts.
    pub(crate) fn texts(&mut self, recorded: &str, today: &str) -> bool {
        if recorded == today {
            return true;
        }
        match (document(recorded), document(today)) {
            (Some(recorded), Some(today)) => {
                self.values(recorded, today);
                true
            }
            (None, None) if self.only_shape() => true,
            (None, None) => {
                self.near(recorded, today) || self.rules.rename && self.ids.allows(recorded, today)
            }
            _ => false,
        }
    }

    fn objects(&mut self, recorded: Json, today: Json) {
        let (Some(before), Some(after)) = (recorded.object(), today.object()) else {
            return self.differ(Some(recorded), Some(today));
        };
        if before.twice().is_some() || after.twice().is_some() {
            return self.differ(Some(recorded), Some(today));
        }
        let new = by_key(&after);
        for (key, value) in before.members() {
            self.path.push(key.to_string());
            match new.get(&**key) {
                Some(today) => self.values(*value, *today),
                None => self.differ(Some(*value), None),
            }
            self.path.pop();
        }
        let old = by_key(&before);
        for (key, value) in after.members() {
            if !old.contains_key(&**key) {
                self.path.push(key.to_string());
                self.differ(None, Some(*value));
                self.path.pop();
            }
        }
    }

    /// Item by item; of a shape, each of today's against the recorded one in its place, or the last.
    fn arrays(&mut self, recorded: Json, today: Json) {
        let (Some(before), Some(after)) = (recorded.list(), today.list()) else {
            return self.differ(Some(recorded), Some(today));
        };
        let shape = self.only_shape();
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
                (Some(old), Some(new)) => self.values(*old, *new),
                (None, _) if shape => {}
                (old, new) => self.differ(old.copied(), new.copied()),
            }
            self.path.pop();
        }
    }

    fn strings(&mut self, recorded: Json, today: Json) {
        let (Some(before), Some(after)) = (recorded.text(), today.text()) else {
            return self.differ(Some(recorded), Some(today));
        };
        if !self.texts(&before, &after) {
            self.differ(Some(recorded), Some(today));
        }
    }

    fn numbers(&mut self, recorded: Json, today: Json) {
        let (before, after) = (recorded.get(), today.get());
        let near = |tolerance| number::near(before, after, tolerance);
        let same = self.only_shape()
            || number::same(before, after)
            || self.rules.tolerance.is_some_and(near);
        if !same {
            self.differ(Some(recorded), Some(today));
        }
    }

    /// Texts that are one number each count as such where a tolerance is asked for; elsewhere `1.10` is a version, too.
    fn near(&self, recorded: &str, today: &str) -> bool {
        let near = |tolerance| {
            number::is_number(recorded)
                && number::is_number(today)
                && number::near(recorded, today, tolerance)
        };
        self.rules.tolerance.is_some_and(near)
    }

    fn only_shape(&self) -> bool {
        self.rules.compare == Compare::Schema
    }

    fn is_ignored(&self) -> bool {
        !self.path.is_empty() && self.rules.ignores(&self.path)
    }

    fn differ(&mut self, recorded: Option<Json>, today: Option<Json>) {
        if self.is_ignored() || self.found.len() >= MOST {
            return;
        }
        let path = self.path.iter().fold(String::new(), |path, part| {
            path + "/" + &part.replace('~', "~0").replace('/', "~1")
        });
        let own = |json: Option<Json>| json.map(|json| json.get().to_owned());
        self.found.push(Mismatch {
            path,
            expected: own(recorded),
            actual: own(today),
        });
    }
}

fn by_key<'o, 'a>(object: &'o Object<'a>) -> HashMap<&'o str, Json<'a>> {
    let members = object.members().iter();
    members.map(|(key, value)| (&**key, *value)).collect()
}

/// A text that is a JSON array or object.
pub(crate) fn document(text: &str) -> Option<Json<'_>> {
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    let begins = text.starts_with(['{', '[']);
    (begins && serde_json::from_str::<IgnoredAny>(text).is_ok()).then(|| Json::new(text))
}

/// A text as JSON.
pub(crate) fn quoted(text: &str) -> Cow<'static, str> {
    serde_json::to_string(text).map_or(Cow::Borrowed("\"\""), Cow::Owned)
}
