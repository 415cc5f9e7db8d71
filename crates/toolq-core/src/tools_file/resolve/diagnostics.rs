//! Collects the problems of a file, and finds positions within values.

use std::collections::HashSet;
use std::ops::Range;

use crate::tools_file::source_map::SourceMap;
use crate::tools_file::spanned::Spanned;
use crate::types::{FileProblem, Severity, Span};

/// The problems of a tools.yaml and its included files.
pub(crate) struct Diagnostics<'t> {
    sources: &'t SourceMap,
    problems: Vec<FileProblem>,
}

impl<'t> Diagnostics<'t> {
    pub(crate) fn new(sources: &'t SourceMap, problems: Vec<FileProblem>) -> Self {
        Self { sources, problems }
    }

    /// Returns the texts that the problems are in.
    pub(crate) fn sources(&self) -> &'t SourceMap {
        self.sources
    }

    pub(crate) fn push(&mut self, problem: FileProblem) {
        self.problems.push(problem);
    }

    /// Adds an error with a hint.
    pub(crate) fn error(
        &mut self,
        span: Span,
        message: impl Into<String>,
        label: &str,
        hint: impl Into<String>,
    ) {
        self.push(FileProblem::error(span, message, label).with_hint(hint));
    }

    /// Adds a warning with a hint.
    pub(crate) fn warning(
        &mut self,
        span: Span,
        message: impl Into<String>,
        label: &str,
        hint: impl Into<String>,
    ) {
        self.push(FileProblem::warning(span, message, label).with_hint(hint));
    }

    /// Returns the problems so far.
    pub(crate) fn problems(&self) -> &[FileProblem] {
        &self.problems
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.problems
            .iter()
            .any(|problem| problem.severity == Severity::Error)
    }

    /// Returns all problems in the order of the file, without warnings at the span of an error.
    pub(crate) fn into_sorted(mut self) -> Vec<FileProblem> {
        let is_error = |problem: &&FileProblem| problem.severity == Severity::Error;
        let error_spans: HashSet<Span> = self
            .problems
            .iter()
            .filter(is_error)
            .map(|problem| problem.span)
            .collect();
        self.problems
            .retain(|problem| is_error(&problem) || !error_spans.contains(&problem.span));
        self.problems.sort_by_key(|problem| problem.span);
        self.problems
    }

    /// Returns the span in the file of `range`, a range of bytes in the value. Escapes and folding make the two differ,
    /// so the text of the range is searched for in the file. Falls back to the span of the whole value.
    pub(crate) fn span_within<T: AsRef<str>>(
        &self,
        spanned: &Spanned<T>,
        range: &Range<usize>,
    ) -> Span {
        let value = spanned.value.as_ref();
        let (Some(source), Some(needle)) = (self.source_at(spanned.span), value.get(range.clone()))
        else {
            return spanned.span;
        };
        let before = value[..range.start].matches(needle).count();
        match source.match_indices(needle).nth(before) {
            Some((offset, _)) => Span {
                start: spanned.span.start + offset,
                len: needle.len(),
            },
            None => spanned.span,
        }
    }

    fn source_at(&self, span: Span) -> Option<&'t str> {
        self.sources.text().get(span.start..span.start + span.len)
    }
}
