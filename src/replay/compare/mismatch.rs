//! A recorded result beside today's: where they differ. Pure, and blind to files and forms.
//!
//! JSON is compared as JSON, wherever it stands; numbers are compared by their digits, keys in any order. What is the
//! same text is not looked into, so that a recording that holds costs little more than reading it.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::replay::compare::renaming::Renaming;
use crate::replay::compare::walk::{Walk, quoted};
use toolq_core::answer;
use toolq_core::json::Json;
use toolq_core::types::{Answer, Compare, Content, Ignored, Recorded};

/// How a tool's results are compared.
#[derive(Debug)]
pub struct Rules<'r> {
    /// The tool's `compare`.
    pub compare: Compare,
    /// Parts that may differ: the tool's, and those of all tools.
    pub ignored: [&'r [Ignored]; 2],
    /// How far numbers may be apart.
    pub tolerance: Option<f64>,
    /// Whether ids of calls may be others than recorded.
    pub rename: bool,
}

impl Rules<'_> {
    pub(crate) fn ignores(&self, path: &[String]) -> bool {
        let mut all = self.ignored.iter().copied().flatten();
        all.any(|ignored| ignored.is_at(path))
    }
}

/// One place where two results differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// JSON pointer into the result, also through strings that hold JSON; empty is the whole.
    pub path: String,
    /// JSON of what was recorded; none where nothing was.
    pub expected: Option<String>,
    /// JSON of what is there today.
    pub actual: Option<String>,
}

/// Where today's answer differs from the recorded one.
pub fn mismatches(
    recorded: &Recorded,
    today: &Answer,
    rules: &Rules<'_>,
    ids: &mut Renaming,
) -> Vec<Mismatch> {
    if rules.compare == Compare::None {
        return Vec::new();
    }
    let (before, after) = (Body::of(&recorded.content), Body::of(&today.content));
    if recorded
        .is_error
        .is_some_and(|error| error != today.is_error)
    {
        return vec![other_end(&before, &after, today.is_error)];
    }
    // A form that carries text only has the text of blocks.
    let after = match (&before, after) {
        (Body::Text(_), Body::Blocks(_)) => Body::Text(answer::as_text(&today.content)),
        (_, after) => after,
    };
    let whole = Mismatch {
        path: String::new(),
        expected: Some(before.json()),
        actual: Some(after.json()),
    };
    if rules.compare == Compare::Exact {
        let same = whole.expected == whole.actual;
        return if same { Vec::new() } else { vec![whole] };
    }
    let mut walk = Walk::new(rules, ids);
    let alike = match (&before, &after) {
        (Body::Text(before), Body::Text(after)) => walk.texts(before, after),
        (Body::Blocks(_), Body::Blocks(_)) => {
            let (before, after) = (before.json(), after.json());
            walk.values(Json::new(&before), Json::new(&after));
            true
        }
        _ => false,
    };
    let mut found = std::mem::take(&mut walk.found);
    if !alike {
        found.push(whole);
    }
    ids.keep(found.is_empty());
    found
}

/// One is an error and the other is none.
fn other_end(before: &Body, after: &Body, is_error: bool) -> Mismatch {
    let told = |is_error: bool, body: &Body| {
        format!(r#"{{"is_error":{is_error},"content":{}}}"#, body.json())
    };
    Mismatch {
        path: String::new(),
        expected: Some(told(!is_error, before)),
        actual: Some(told(is_error, after)),
    }
}

/// A content as it is compared: one block of text is a text.
enum Body<'a> {
    Text(Cow<'a, str>),
    Blocks(&'a [Box<RawValue>]),
}

impl<'a> Body<'a> {
    fn of(content: &'a Content) -> Self {
        match content {
            Content::Text(text) => Self::Text(Cow::Borrowed(text)),
            Content::Blocks(blocks) => match blocks.as_slice() {
                [] => Self::Text(Cow::Borrowed("")),
                [block] => text_of(block).map_or(Self::Blocks(blocks), Self::Text),
                _ => Self::Blocks(blocks),
            },
        }
    }

    fn json(&self) -> String {
        match self {
            Self::Text(text) => quoted(text).into_owned(),
            Self::Blocks(blocks) => {
                let blocks: Vec<&str> = blocks.iter().map(|block| block.get()).collect();
                format!("[{}]", blocks.join(","))
            }
        }
    }
}

/// The text of a block that is one, in the words of either vendor.
fn text_of(block: &RawValue) -> Option<Cow<'_, str>> {
    let block = Json::from(block).object()?;
    let is_text = matches!(&*block.text("type")?, "text" | "input_text" | "output_text");
    block.text("text").filter(|_| is_text)
}
