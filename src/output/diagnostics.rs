//! Problems of a file a person wrote → what that person sees: each with its line, a caret and what to do.
#[cfg(test)]
mod tests;

use std::fmt;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError,
    MietteSpanContents, SourceCode, SourceSpan, SpanContents,
};

use crate::output::line_col::Place;
use toolq_core::types::{Problem, Severity, Span};

/// More of a line is not shown, in bytes, and so much of it before the place of the problem.
const LONGEST: usize = 400;
const BEFORE: usize = 100;
/// What stands for the rest of a line.
const REST: &str = "…";

/// The problems of `text`, which `file_name` holds, one after another; `width` is in columns.
pub fn render(
    problems: &[Problem],
    file_name: &str,
    text: &str,
    color: bool,
    width: usize,
) -> String {
    let theme = if color {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(width)
        .with_links(false);
    let mut rendered = String::new();
    let mut place = Place::default();
    for problem in problems {
        let found = place.moved(text, problem.span.start);
        place = found.unwrap_or(place);
        let source = Source {
            file_name,
            text,
            place,
            line: found.map(|place| Line::at(text, place)).unwrap_or_default(),
        };
        let shown = Shown { problem, source };
        // It fails only where the text has no such place; then the words alone must do.
        if handler.render_report(&mut rendered, &shown).is_err() {
            rendered.push_str(&problem.message);
        }
        rendered.push('\n');
    }
    rendered
}

/// A file of which only the line of a problem is shown.
#[derive(Debug)]
struct Source<'p> {
    file_name: &'p str,
    text: &'p str,
    place: Place,
    line: Line,
}

/// The line of a problem, or a part of it with `…` for the rest.
#[derive(Debug, Default)]
struct Line {
    shown: String,
    /// Where in the file it would begin if each `…` were a part of it, in bytes.
    start: usize,
    /// Where in the file its last part ends.
    end: usize,
}

impl Line {
    /// The line around a place.
    fn at(text: &str, Place { at, line_start, .. }: Place) -> Self {
        // Of a longer one no more is shown, whatever it has.
        let behind = &text[at..text.floor_char_boundary(at + 2 * LONGEST)];
        let line_end = at + behind.find(['\r', '\n']).unwrap_or(behind.len());
        let mut start = text.floor_char_boundary(at.saturating_sub(BEFORE));
        if start < line_start + REST.len() || line_end - line_start <= LONGEST {
            start = line_start;
        }
        let end = text.floor_char_boundary(line_end.min(start + LONGEST));
        let before = if start > line_start { REST } else { "" };
        let behind = if end < line_end { REST } else { "" };
        Self {
            shown: [before, &text[start..end], behind].concat(),
            start: start - before.len(),
            end,
        }
    }
}

impl SourceCode for Source<'_> {
    /// The whole line where `span` begins; without lines of context, as miette asks for the place itself, the span
    /// alone.
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        _: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let at = span.offset();
        let place = self.place.moved(self.text, at);
        let place = place.ok_or(MietteError::OutOfBounds)?;
        let (data, start, column) = if lines_before == 0 {
            let end = (at + span.len()).min(self.line.end);
            (&self.text.as_bytes()[at..end], at, place.column)
        } else {
            (self.line.shown.as_bytes(), self.line.start, 0)
        };
        Ok(Box::new(MietteSpanContents::new_named(
            self.file_name.to_owned(),
            data,
            (start, data.len()).into(),
            place.line,
            column,
            1,
        )))
    }
}

/// A problem and its file, as miette takes them.
#[derive(Debug)]
struct Shown<'p> {
    problem: &'p Problem,
    source: Source<'p>,
}

impl Shown<'_> {
    /// The place, up to the end of the line where it begins.
    fn in_one_line(&self) -> Span {
        let Span { start, len } = self.problem.span;
        let text = self.source.text.get(start..start + len).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        let room = self.source.line.end.saturating_sub(start);
        Span {
            start,
            len: line.len().min(room),
        }
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem.message)
    }
}

impl std::error::Error for Shown<'_> {}

impl Diagnostic for Shown<'_> {
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.problem.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let hint = self.problem.hint.as_deref()?;
        Some(Box::new(hint))
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = Some(self.problem.label.clone()).filter(|label| !label.is_empty());
        let span = self.in_one_line();
        let span = LabeledSpan::new(label, span.start, span.len);
        Some(Box::new(std::iter::once(span)))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }
}
