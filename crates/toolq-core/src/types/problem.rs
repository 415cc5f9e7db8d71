/// A place in a text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// How many bytes.
    pub len: usize,
}

/// Whether a problem stops the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Nothing runs.
    Error,
    /// It runs, and people are told.
    Warning,
}

/// Something wrong in a file that a person wrote: what, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Whether it stops the program.
    pub severity: Severity,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// Where it stands.
    pub span: Span,
    /// What is written under the place.
    pub label: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Problem {
    /// An error at `span`.
    pub fn error(span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            span,
            label: label.into(),
            hint: None,
        }
    }

    /// A warning at `span`.
    pub fn warning(span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(span, message, label)
        }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
