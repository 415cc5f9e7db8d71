//! Problems of a file a person wrote → what that person sees: each with its line, a caret and what to do.

use std::fmt;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError,
    MietteSpanContents, SourceCode, SourceSpan, SpanContents,
};

use super::place::Place;
use crate::model::{Problem, Severity, Span};

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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use insta::assert_snapshot;
    use unicode_width::UnicodeWidthStr as _;

    use super::*;
    use crate::validate::load;

    fn shown(text: &str) -> String {
        let loaded = load(text, Path::new("/srv"), Path::new("/srv"));
        render(&loaded.problems, "tools.yaml", text, false, 100)
    }

    #[test]
    fn all_problems_at_once_in_the_order_of_the_file() {
        let text = r#"concurrency: 0
tools:
  read_file:
    input_schema:
      type: object
      properties: {path: {type: strin}, 名: {type: string, pattern: "(?=x)"}}
      required: [path]
    timout: 5s
    timeout: 5
    command: [cat, "{pat}", 12]
  run:
    input_schema: {type: object, properties: {script: {type: string}}, required: [script]}
    command: [sh, -c, "cd /tmp; {script}"]
"#;
        assert_snapshot!(shown(text), @r##"
         × 0 calls cannot run at once
          ╭─[tools.yaml:1:14]
        1 │ concurrency: 0
          ·              ┬
          ·              ╰── 1 to 10000
          ╰────
         help: 1 turns parallelism off

         × `strin` is no type of JSON Schema
          ╭─[tools.yaml:6:33]
        6 │       properties: {path: {type: strin}, 名: {type: string, pattern: "(?=x)"}}
          ·                                 ──┬──
          ·                                   ╰── in this schema
          ╰────
         help: did you mean `string`?

         × the pattern looks around, which needs a backtracking engine
          ╭─[tools.yaml:6:68]
        6 │       properties: {path: {type: strin}, 名: {type: string, pattern: "(?=x)"}}
          ·                                                                     ───┬───
          ·                                                                        ╰── in this schema
          ╰────
         help: patterns are matched in linear time, without look-around and back references; check the
               rest in the tool

         × unknown key `timout`
          ╭─[tools.yaml:8:5]
        8 │     timout: 5s
          ·     ───┬──
          ·        ╰── no key of `read_file`
          ╰────
         help: did you mean `timeout`?

         × a duration needs a unit
          ╭─[tools.yaml:9:14]
        9 │     timeout: 5
          ·              ─
          ╰────
         help: write `5s` for seconds or `5ms` for milliseconds

         × the input has no `pat`
           ╭─[tools.yaml:10:21]
        10 │     command: [cat, "{pat}", 12]
           ·                     ──┬──
           ·                       ╰── not in `input_schema`
           ╰────
         help: did you mean `path`? Or write `{{pat}` if the text `{pat}` is meant

         × an element of `command` must be text
           ╭─[tools.yaml:10:29]
        10 │     command: [cat, "{pat}", 12]
           ·                             ─┬
           ·                              ╰── this is a number
           ╰────
         help: quotes make it text

         × a value of the input cannot stand in a text that is run
           ╭─[tools.yaml:13:33]
        13 │     command: [sh, -c, "cd /tmp; {script}"]
           ·                                 ────┬───
           ·                                     ╰── a value of the input
           ╰────
         help: hand it over beside the text: as `"$1"` in `[sh, -c, 'grep -e "$1" notes', --, "{x}"]`, or
               by `env` or `stdin`
        "##);
    }

    #[test]
    fn a_text_that_is_no_yaml() {
        assert_snapshot!(shown("tools:\n  a: {b: [1\n"), @r##"
         × unclosed bracket '['
          ╭─[tools.yaml:2:10]
        2 │   a: {b: [1
          ·          ▲
          ╰────
        "##);
    }

    #[test]
    fn a_label_stays_in_its_line() {
        let text = "a: |\n  one\n  two\n";
        let span = Span { start: 7, len: 9 };
        let problem = Problem::warning(span, "two lines", "this").with_hint("none");
        assert_snapshot!(render(&[problem], "f", text, false, 80), @r##"
         ⚠ two lines
          ╭─[f:2:3]
        2 │   one
          ·   ─┬─
          ·    ╰── this
          ╰────
         help: none
        "##);
    }

    #[test]
    fn lines_may_end_as_on_windows() {
        let text = "a: 1\r\nb: 2\r\nc: 3\r\n";
        let problem = Problem::error(Span { start: 6, len: 1 }, "two", "");
        assert_snapshot!(render(&[problem], "f", text, false, 80), @r"
         × two
          ╭─[f:2:1]
        2 │ b: 2
          · ─
          ╰────
        ");
    }

    /// A place that the text doesn't have costs the picture, not the words.
    #[test]
    fn words_survive_a_wrong_place() {
        let problem = Problem::error(Span { start: 99, len: 3 }, "lost", "");
        assert!(render(&[problem], "f", "a", false, 80).contains("lost"));
    }

    #[test]
    fn color_is_the_callers_choice() {
        let problem = Problem::error(Span::default(), "red", "");
        let escaped =
            |color| render(std::slice::from_ref(&problem), "f", "a", color, 80).contains('\x1b');
        assert!(escaped(true) && !escaped(false));
    }

    #[test]
    fn a_long_line_is_shown_around_its_problem() {
        let long = format!("n: {{title: {}}}, ", "名".repeat(5_000));
        for place in ["x: {type: strin}, ", ""] {
            let text = format!(
                "tools:\n  a:\n    input_schema: {{type: object, properties: {{{place}{long}y: {{type: strin}}}}}}\n    command: [a]\n"
            );
            let shown = shown(&text);
            assert!(shown.len() < 4_000 && shown.contains('…'), "{shown}");
            let lines: Vec<&str> = shown.lines().collect();
            let caret = lines.iter().position(|line| line.contains('┬')).unwrap();
            let before = |line: &str, mark: &str| line.split(mark).next().unwrap().width();
            let wrong = before(lines[caret - 1], "strin}");
            assert_eq!(before(lines[caret], "──┬"), wrong, "{shown}");
        }
    }
}
