//! Finds the differences between a recorded result and the current one.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use toolq_core::answer;
use toolq_core::json::{Decimal, JsonKind, JsonText, ParsedObject, json_pointer};
use toolq_core::types::{
    CallAnswer, Compare, IgnorePattern, RecordedResult, ResultContent, TextNormalizer,
};

// Pure, and independent of files and dialects.
//
// JSON is compared as JSON wherever it occurs, also inside strings: numbers by their digits, keys in any order.
// Identical texts aren't parsed, so a recording that matches costs little more than reading it.

/// How a tool's results are compared.
#[derive(Debug)]
pub struct CompareRules<'r> {
    /// The tool's `compare`.
    pub compare: Compare,
    /// Parts that may differ: those of the tool, and those for all tools.
    pub ignored: [&'r [IgnorePattern]; 2],
    /// What is replaced in texts before they are compared: by the tool, and by all tools.
    pub normalizers: [&'r [TextNormalizer]; 2],
}

impl CompareRules<'_> {
    fn is_ignored(&self, path: &[String]) -> bool {
        let mut all = self.ignored.iter().copied().flatten();
        all.any(|ignored| ignored.matches(path))
    }

    /// Returns a text as it is compared.
    pub(crate) fn normalize<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let all = self.normalizers.iter().copied().flatten();
        all.fold(Cow::Borrowed(text), |text, normalizer| match text {
            Cow::Borrowed(text) => normalizer.apply(text),
            Cow::Owned(text) => Cow::Owned(normalizer.apply(&text).into_owned()),
        })
    }
}

/// One place where two results differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultMismatch {
    /// JSON pointer into the result, also through strings that contain JSON; empty for the whole.
    pub path: String,
    /// The recorded JSON, if any.
    pub recorded: Option<String>,
    /// The current JSON, if any.
    pub current: Option<String>,
}

/// Returns where the current result differs from the recorded one.
pub fn find_mismatches(
    recorded: &RecordedResult,
    current: &CallAnswer,
    rules: &CompareRules<'_>,
    ids: &mut IdRenaming,
) -> Vec<ResultMismatch> {
    if rules.compare == Compare::None {
        return Vec::new();
    }
    let recorded_result = answer::content_for_model(&recorded.content);
    let current_result = answer::content_for_model(&current.content);
    let recorded_content = ComparedContent::new(&recorded_result);
    let current_content = ComparedContent::new(&current_result);
    if recorded
        .is_error
        .is_some_and(|error| error != current.is_error)
    {
        return vec![error_flag_mismatch(
            &recorded_content,
            &current_content,
            current.is_error,
        )];
    }
    // A text-only format records only the text of blocks.
    let current_content = match (&recorded_content, current_content) {
        (ComparedContent::Text(_), ComparedContent::Blocks(_)) => {
            ComparedContent::Text(answer::content_as_text(&current.content))
        }
        (_, content) => content,
    };
    let whole = ResultMismatch {
        path: String::new(),
        recorded: Some(recorded_content.to_normalized_json(rules)),
        current: Some(current_content.to_normalized_json(rules)),
    };
    if rules.compare == Compare::Exact {
        let same = whole.recorded == whole.current;
        return if same { Vec::new() } else { vec![whole] };
    }
    let mut walk = JsonComparison {
        rules,
        renaming: ids,
        mismatches: Vec::new(),
        path: Vec::new(),
    };
    let alike = match (&recorded_content, &current_content) {
        (ComparedContent::Text(recorded), ComparedContent::Text(current)) => {
            walk.compare_texts(recorded, current)
        }
        (ComparedContent::Blocks(_), ComparedContent::Blocks(_)) => {
            let (recorded, current) = (recorded_content.to_json(), current_content.to_json());
            walk.compare_values(JsonText::new(&recorded), JsonText::new(&current));
            true
        }
        _ => false,
    };
    let mut found = std::mem::take(&mut walk.mismatches);
    if !alike {
        found.push(whole);
    }
    ids.finish_comparison(found.is_empty());
    found
}

/// Returns the mismatch of two results of which only one is an error.
fn error_flag_mismatch(
    recorded: &ComparedContent,
    current: &ComparedContent,
    is_error: bool,
) -> ResultMismatch {
    let to_json = |is_error: bool, body: &ComparedContent| {
        format!(r#"{{"is_error":{is_error},"content":{}}}"#, body.to_json())
    };
    ResultMismatch {
        path: String::new(),
        recorded: Some(to_json(!is_error, recorded)),
        current: Some(to_json(is_error, current)),
    }
}

/// Content as it is compared. A single text block counts as text.
enum ComparedContent<'a> {
    Text(Cow<'a, str>),
    Blocks(&'a [Box<RawValue>]),
}

impl<'a> ComparedContent<'a> {
    fn new(content: &'a ResultContent) -> Self {
        match content {
            ResultContent::Text(text) => Self::Text(Cow::Borrowed(text)),
            ResultContent::Blocks(blocks) => match blocks.as_slice() {
                [] => Self::Text(Cow::Borrowed("")),
                [block] => text_of_block(block).map_or(Self::Blocks(blocks), Self::Text),
                _ => Self::Blocks(blocks),
            },
        }
    }

    /// Returns the JSON of the content, with a text as it is compared.
    fn to_normalized_json(&self, rules: &CompareRules<'_>) -> String {
        match self {
            Self::Text(text) => to_json_string(&rules.normalize(text)).into_owned(),
            Self::Blocks(_) => self.to_json(),
        }
    }

    fn to_json(&self) -> String {
        match self {
            Self::Text(text) => to_json_string(text).into_owned(),
            Self::Blocks(blocks) => {
                let blocks: Vec<&str> = blocks.iter().map(|block| block.get()).collect();
                format!("[{}]", blocks.join(","))
            }
        }
    }
}

/// Returns the text of a text block of either vendor.
fn text_of_block(block: &RawValue) -> Option<Cow<'_, str>> {
    let block = JsonText::from(block).object()?;
    let is_text = matches!(
        &*block.get_text("type")?,
        "text" | "input_text" | "output_text"
    );
    block.get_text("text").filter(|_| is_text)
}

// Compares two JSON values. Only parts whose text differs are parsed, one level at a time.

/// Maximum nesting depth. Deeper values are compared as text.
const MAX_DEPTH: usize = 100;
/// Maximum number of mismatches per result.
const MAX_MISMATCHES: usize = 100;

/// A comparison in progress.
struct JsonComparison<'w> {
    rules: &'w CompareRules<'w>,
    renaming: &'w mut IdRenaming,
    mismatches: Vec<ResultMismatch>,
    path: Vec<String>,
}

impl JsonComparison<'_> {
    /// Compares two values at the current path.
    fn compare_values(&mut self, recorded: JsonText, current: JsonText) {
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
    fn compare_texts(&mut self, recorded: &str, current: &str) -> bool {
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
                    || self.renaming.try_pair(recorded, current)
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
        if !self.compares_shape_only() && !is_same(recorded_number, current_number) {
            self.add_mismatch(Some(recorded), Some(current));
        }
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
fn parse_document(text: &str) -> Option<JsonText<'_>> {
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    let begins = text.starts_with(['{', '[']);
    (begins && serde_json::from_str::<IgnoredAny>(text).is_ok()).then(|| JsonText::new(text))
}

/// Returns a text as a JSON string.
fn to_json_string(text: &str) -> Cow<'static, str> {
    serde_json::to_string(text).map_or(Cow::Borrowed("\"\""), Cow::Owned)
}

// Compares JSON numbers of any length.

/// Returns whether two JSON numbers are equal to the last digit, however they are written (`1`, `1.0`, `10e-1`).
fn is_same(one: &str, other: &str) -> bool {
    one == other || Decimal::parse(one).is_some_and(|one| Some(one) == Decimal::parse(other))
}

// Maps the call ids of a recording to those of the current run.

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
mod json_comparison_tests {
    use super::*;

    #[test]
    fn spellings_of_one_number_are_the_same() {
        for (one, other) in [
            ("1", "1.0"),
            ("100", "1e2"),
            ("0.10", "1E-1"),
            ("-0", "0.0"),
            ("-0e7", "0"),
            ("12345678901234567890123", "12345678901234567890123.0"),
        ] {
            assert!(is_same(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("1", "-1"),
            ("1", "10"),
            ("12345678901234567890123", "12345678901234567890124"),
            ("0.1", "0.10000000000000000001"),
            ("1e99999999999", "1e99999999998"),
        ] {
            assert!(!is_same(one, other), "{one} {other}");
        }
    }
}

#[cfg(test)]
mod id_renaming_tests {
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
