//! Problems in files that people write.

/// A range of bytes in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Length in bytes.
    pub len: usize,
}

/// Whether a problem keeps toolq from running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Nothing runs.
    Error,
    /// Calls run, and the warning is shown.
    Warning,
}

/// Something wrong in a file that a person wrote: what, where, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblem {
    /// Whether it keeps toolq from running.
    pub severity: Severity,
    /// What is wrong, in one sentence without a period.
    pub message: String,
    /// Where it is.
    pub span: Span,
    /// The text under the marked place.
    pub label: String,
    /// How to fix it.
    pub hint: Option<String>,
}

impl FileProblem {
    /// Creates an error at `span`.
    pub fn error(span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            span,
            label: label.into(),
            hint: None,
        }
    }

    /// Creates a warning at `span`.
    pub fn warning(span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(span, message, label)
        }
    }

    /// Adds a hint about how to fix the problem.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
