//! Lists of results, which are built one at a time while they are written, and the ids in them.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::types::{CallAnswer, is_generated_id};

/// An id: a text, or the digits of a number.
#[derive(Clone, Copy)]
pub(super) struct AnswerId<'a> {
    text: &'a str,
    is_number: bool,
}

impl<'a> AnswerId<'a> {
    pub fn of(answer: &'a CallAnswer) -> Self {
        Self {
            text: &answer.tool_use_id,
            is_number: answer.has_number_id,
        }
    }

    /// Returns the id that the call had itself, for dialects whose results need none.
    pub fn own(answer: &'a CallAnswer) -> Option<Self> {
        (!is_generated_id(&answer.tool_use_id)).then(|| Self::of(answer))
    }
}

impl Serialize for AnswerId<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = || RawValue::from_string(self.text.to_owned()).ok();
        match self.is_number.then(number).flatten() {
            Some(number) => number.serialize(serializer),
            None => serializer.serialize_str(self.text),
        }
    }
}

/// The results of these calls, each as `build` makes it.
pub struct AnswerList<'a, T> {
    answers: &'a [CallAnswer],
    build: fn(&'a CallAnswer) -> T,
}

impl<'a, T> AnswerList<'a, T> {
    /// Creates a list of these results.
    pub fn new(answers: &'a [CallAnswer], build: fn(&'a CallAnswer) -> T) -> Self {
        Self { answers, build }
    }
}

impl<T: Serialize> Serialize for AnswerList<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.answers.iter().map(self.build))
    }
}
