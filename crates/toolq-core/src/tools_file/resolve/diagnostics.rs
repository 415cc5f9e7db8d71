//! What is found on the way, and where in a value it stands.

use std::collections::HashSet;
use std::ops::Range;

use crate::tools_file::spanned::Placed;
use crate::types::{Problem, Severity, Span};

/// The problems of one file.
pub(crate) struct Findings<'t> {
    text: &'t str,
    problems: Vec<Problem>,
}

impl<'t> Findings<'t> {
    pub(crate) fn new(text: &'t str, problems: Vec<Problem>) -> Self {
        Self { text, problems }
    }

    pub(crate) fn push(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// An error with what to do about it.
    pub(crate) fn error(
        &mut self,
        span: Span,
        message: impl Into<String>,
        label: &str,
        hint: impl Into<String>,
    ) {
        self.push(Problem::error(span, message, label).with_hint(hint));
    }

    /// A warning with what to do about it.
    pub(crate) fn warning(
        &mut self,
        span: Span,
        message: impl Into<String>,
        label: &str,
        hint: impl Into<String>,
    ) {
        self.push(Problem::warning(span, message, label).with_hint(hint));
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.problems
            .iter()
            .any(|problem| problem.severity == Severity::Error)
    }

    /// All of them, in the order of the file. What is wrong is not warned of, too.
    pub(crate) fn sorted(mut self) -> Vec<Problem> {
        let is_error = |problem: &&Problem| problem.severity == Severity::Error;
        let wrong: HashSet<Span> = self
            .problems
            .iter()
            .filter(is_error)
            .map(|problem| problem.span)
            .collect();
        self.problems
            .retain(|problem| is_error(&problem) || !wrong.contains(&problem.span));
        self.problems.sort_by_key(|problem| problem.span);
        self.problems
    }

    /// The place in the file of `range`, which counts the bytes of a text. A text that YAML escapes or folds is longer
    /// in the file: there, the same words are looked for.
    pub(crate) fn within<T: AsRef<str>>(&self, placed: &Placed<T>, range: &Range<usize>) -> Span {
        let value = placed.value.as_ref();
        let (Some(source), Some(words)) = (self.source(placed.span), value.get(range.clone()))
        else {
            return placed.span;
        };
        let before = value[..range.start].matches(words).count();
        match source.match_indices(words).nth(before) {
            Some((at, _)) => Span {
                start: placed.span.start + at,
                len: words.len(),
            },
            None => placed.span,
        }
    }

    fn source(&self, span: Span) -> Option<&'t str> {
        self.text.get(span.start..span.start + span.len)
    }
}
