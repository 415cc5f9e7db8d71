use std::borrow::Cow;

/// What is told of a call that has no result.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// What happened, in one sentence.
    pub(crate) error: String,
    /// What it wrote, or one line a problem.
    pub(crate) details: String,
    /// What to do now.
    pub(crate) hint: Cow<'static, str>,
}

impl Account {
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
