//! Lists of results, which are built one at a time while they are written: a turn may have many.

use serde::{Serialize, Serializer};

use crate::types::CallAnswer;

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
