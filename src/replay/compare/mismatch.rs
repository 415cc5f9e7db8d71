//! Compares a recorded result with the current one. Pure, and independent of files and dialects.
//!
//! JSON is compared as JSON wherever it occurs, also inside strings: numbers by their digits, keys in any order.
//! Identical texts aren't parsed, so a recording that matches costs little more than reading it.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::replay::compare::id_renaming::IdRenaming;
use crate::replay::compare::json_comparison::{JsonComparison, to_json_string};
use toolq_core::answer;
use toolq_core::json::JsonText;
use toolq_core::types::{
    CallAnswer, Compare, IgnorePattern, RecordedResult, ResultContent, TextNormalizer,
};

/// How a tool's results are compared.
#[derive(Debug)]
pub struct CompareRules<'r> {
    /// The tool's `compare`.
    pub compare: Compare,
    /// Parts that may differ: those of the tool, and those for all tools.
    pub ignored: [&'r [IgnorePattern]; 2],
    /// What is replaced in texts before they are compared: by the tool, and by all tools.
    pub normalizers: [&'r [TextNormalizer]; 2],
    /// Absolute or relative tolerance for numbers.
    pub tolerance: Option<f64>,
    /// Whether call ids may differ from the recorded ones, consistently one for one.
    pub rename_ids: bool,
}

impl CompareRules<'_> {
    pub(crate) fn is_ignored(&self, path: &[String]) -> bool {
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
    let mut walk = JsonComparison::new(rules, ids);
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
