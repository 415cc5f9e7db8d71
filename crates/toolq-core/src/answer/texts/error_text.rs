//! The parts of an error text.

use std::borrow::Cow;

/// What a model reads about a call that failed or didn't run.
#[derive(Debug, Default)]
pub(crate) struct ErrorText {
    /// What happened, in one sentence.
    pub(crate) error: String,
    /// The call's output, or one line per problem.
    pub(crate) details: String,
    /// What to do now.
    pub(crate) hint: Cow<'static, str>,
}

impl ErrorText {
    pub(crate) fn new(error: impl Into<String>, hint: impl Into<Cow<'static, str>>) -> Self {
        Self {
            error: error.into(),
            details: String::new(),
            hint: hint.into(),
        }
    }

    pub(crate) fn with_hint(self, hint: String) -> Self {
        Self {
            hint: hint.into(),
            ..self
        }
    }

    pub(crate) fn with_details(mut self, details: String) -> Self {
        self.details = details;
        self
    }
}
