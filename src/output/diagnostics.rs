//! Renders problems of a file: each with its source line, a caret, and a hint.

#[cfg(test)]
mod tests;

use std::fmt;
use std::iter::repeat_n;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError,
    MietteSpanContents, SourceCode, SourceSpan, SpanContents, ThemeStyles,
};

use crate::output::problem_report::TextPosition;
use redact::Mask;
use toolq_core::text::{escape, is_hidden};
use toolq_core::types::{FileProblem, Severity, Span};

/// Maximum part of a line that is shown.
const MAX_EXCERPT_BYTES: usize = 400;
/// How much of a longer line is shown before the problem.
const LEADING_BYTES: usize = 100;
/// Maximum length of a word in a message, such as a quoted key, in characters.
const MAX_WORD_CHARS: usize = 200;
/// How much of the end of a longer word is shown.
const WORD_END_CHARS: usize = 20;
/// Replaces the cut parts of a line.
const ELLIPSIS: &str = "…";

/// How problems look.
#[derive(Debug, Clone, Copy)]
pub struct DiagnosticStyle {
    /// Whether to use colors.
    pub color: bool,
    /// Whether lines and arrows may go beyond ASCII.
    pub is_unicode: bool,
    /// The width in columns.
    pub width: usize,
}

impl DiagnosticStyle {
    fn theme(self) -> GraphicalTheme {
        let mut theme = match (self.is_unicode, self.color) {
            (true, true) => return GraphicalTheme::unicode(),
            (true, false) => return GraphicalTheme::unicode_nocolor(),
            (false, _) => GraphicalTheme::ascii(),
        };
        if !self.color {
            theme.styles = ThemeStyles::none();
        }
        theme
    }
}

/// Renders the problems of a file with the content `text`, without the secrets in it.
pub fn render(
    problems: &[FileProblem],
    file_name: &str,
    text: &str,
    mask: &Mask,
    style: DiagnosticStyle,
) -> String {
    let text = &*mask.cover(text);
    let handler = GraphicalReportHandler::new_themed(style.theme())
        .with_width(style.width)
        .with_links(false);
    let mut rendered = String::new();
    let mut position = TextPosition::default();
    for problem in problems {
        let problem = &mask_problem(problem, mask);
        let advanced = position.advance_to(text, problem.span.start);
        position = advanced.unwrap_or(position);
        let source = DiagnosticSource {
            file_name,
            text,
            position,
            excerpt: advanced
                .map(|place| LineExcerpt::around(text, place))
                .unwrap_or_default(),
        };
        let diagnostic = ProblemDiagnostic { problem, source };
        // Rendering fails only if the span is outside the text; print the bare message then.
        if handler.render_report(&mut rendered, &diagnostic).is_err() {
            rendered.push_str(&escape_lines(&problem.message));
        }
        rendered.push('\n');
    }
    rendered
}

fn mask_problem(problem: &FileProblem, mask: &Mask) -> FileProblem {
    let masked = |text: &str| mask.apply(text).into_owned();
    // Cut only what is masked: a part of a secret wouldn't be.
    FileProblem {
        message: cut_words(&masked(&problem.message)),
        label: cut_words(&masked(&problem.label)),
        hint: problem.hint.as_deref().map(masked),
        ..problem.clone()
    }
}

/// Cuts each word of a text that is too long in its middle.
fn cut_words(text: &str) -> String {
    let cut = |word: &str| match word.chars().count() {
        0..=MAX_WORD_CHARS => word.to_owned(),
        count => {
            let start = word.chars().take(MAX_WORD_CHARS - WORD_END_CHARS);
            let end = word.chars().skip(count - WORD_END_CHARS);
            start.chain(ELLIPSIS.chars()).chain(end).collect()
        }
    };
    let words: Vec<String> = text.split(' ').map(cut).collect();
    words.join(" ")
}

/// A file as miette's source code. Only the line of one problem is shown.
#[derive(Debug)]
struct DiagnosticSource<'p> {
    file_name: &'p str,
    text: &'p str,
    position: TextPosition,
    excerpt: LineExcerpt,
}

/// The line of a problem, cut with `…` if it is long.
#[derive(Debug, Default)]
struct LineExcerpt {
    text: String,
    /// Byte offset in the file that corresponds to the start of `text`. If `text` starts with `…`, this is less than
    /// the offset of the first character shown, by the length of `…`.
    start: usize,
    /// Byte offset in the file where the shown part ends.
    end: usize,
}

/// Replaces characters that a terminal would act on with as many `?` as they have bytes, so that offsets stay valid.
fn hide_controls(text: &str) -> String {
    let mut hidden = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\t' && is_hidden(c) {
            hidden.extend(repeat_n('?', c.len_utf8()));
        } else {
            hidden.push(c);
        }
    }
    hidden
}

/// Escapes each line of a text for display.
pub(super) fn escape_lines(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(escape).collect();
    lines.join("\n")
}

impl LineExcerpt {
    /// Cuts the line around a position.
    fn around(
        text: &str,
        TextPosition {
            offset: at,
            line_start,
            ..
        }: TextPosition,
    ) -> Self {
        // No excerpt reaches farther than this, so the rest of a long line isn't searched for its end.
        let following = &text[at..text.floor_char_boundary(at + 2 * MAX_EXCERPT_BYTES)];
        let line_end = at + following.find(['\r', '\n']).unwrap_or(following.len());
        let mut start = text.floor_char_boundary(at.saturating_sub(LEADING_BYTES));
        if start < line_start + ELLIPSIS.len() || line_end - line_start <= MAX_EXCERPT_BYTES {
            start = line_start;
        }
        let end = text.floor_char_boundary(line_end.min(start + MAX_EXCERPT_BYTES));
        let prefix = if start > line_start { ELLIPSIS } else { "" };
        let suffix = if end < line_end { ELLIPSIS } else { "" };
        Self {
            text: [prefix, &hide_controls(&text[start..end]), suffix].concat(),
            start: start - prefix.len(),
            end,
        }
    }
}

impl SourceCode for DiagnosticSource<'_> {
    /// Returns the whole line where `span` begins. A request without context lines is miette's way to locate the span
    /// itself, so it gets the span alone.
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        _: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let at = span.offset();
        let place = self.position.advance_to(self.text, at);
        let place = place.ok_or(MietteError::OutOfBounds)?;
        let (data, start, column) = if lines_before == 0 {
            let end = (at + span.len()).min(self.excerpt.end);
            // Only its length matters.
            (&self.text.as_bytes()[at..end], at, place.column)
        } else {
            (self.excerpt.text.as_bytes(), self.excerpt.start, 0)
        };
        Ok(Box::new(MietteSpanContents::new_named(
            escape(self.file_name).into_owned(),
            data,
            (start, data.len()).into(),
            place.line,
            column,
            1,
        )))
    }
}

/// A problem with its file, as miette's diagnostic.
#[derive(Debug)]
struct ProblemDiagnostic<'p> {
    problem: &'p FileProblem,
    source: DiagnosticSource<'p>,
}

impl ProblemDiagnostic<'_> {
    /// Returns the span, cut at the end of its first line.
    fn span_in_first_line(&self) -> Span {
        let Span { start, len } = self.problem.span;
        let text = self.source.text.get(start..start + len).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        let room = self.source.excerpt.end.saturating_sub(start);
        Span {
            start,
            len: line.len().min(room),
        }
    }
}

impl fmt::Display for ProblemDiagnostic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape_lines(&self.problem.message))
    }
}

impl std::error::Error for ProblemDiagnostic<'_> {}

impl Diagnostic for ProblemDiagnostic<'_> {
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.problem.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let hint = self.problem.hint.as_deref()?;
        Some(Box::new(escape_lines(hint)))
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = Some(escape_lines(&self.problem.label)).filter(|label| !label.is_empty());
        let span = self.span_in_first_line();
        let span = LabeledSpan::new(label, span.start, span.len);
        Some(Box::new(std::iter::once(span)))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }
}
