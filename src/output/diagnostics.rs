//! Renders problems of a file: for people, each with its source line, a caret, and a hint; and for other programs.

#[cfg(test)]
mod tests;

use std::fmt;
use std::iter::repeat_n;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError,
    MietteSpanContents, SourceCode, SourceSpan, SpanContents, ThemeStyles,
};
use serde::Serialize;
use serde_json::{Value, json};

use redact::Mask;
use toolq_core::text::{escape, is_hidden, line_starts};
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

// The problems of a file for other programs: as JSON, as annotations of GitHub Actions, or as SARIF.

/// The specification that the report follows: SARIF 2.1.0 of OASIS.
const SARIF_SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// A problem with its place in a file. Lines and columns count from 1, columns in characters. The end is after the last
/// character.
#[derive(Debug, Serialize)]
pub struct PlacedProblem {
    /// `error` or `warning`.
    pub severity: &'static str,
    /// What is wrong.
    pub message: String,
    /// The text under the marked place.
    pub label: String,
    /// How to fix it.
    pub hint: Option<String>,
    /// The path of the file, as given.
    pub file: String,
    pub line: usize,
    pub column: usize,
    pub end_line: usize,
    end_column: usize,
}

impl PlacedProblem {
    /// Places a problem of the file with the content `text`, without the secrets in it.
    pub fn new(problem: &FileProblem, file: &str, text: &str, mask: &Mask) -> Self {
        let masked = |text: &str| mask.apply(text).into_owned();
        let span = problem.span;
        let start = TextPosition::default()
            .advance_to(text, span.start)
            .unwrap_or_default();
        let end = start
            .advance_to(text, span.start + span.len)
            .unwrap_or(start);
        Self {
            severity: match problem.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            message: masked(&problem.message),
            label: masked(&problem.label),
            hint: problem.hint.as_deref().map(masked),
            file: masked(file),
            line: start.line + 1,
            column: start.column + 1,
            end_line: end.line + 1,
            end_column: end.column + 1,
        }
    }

    /// The message with the label and the hint.
    fn whole_text(&self) -> String {
        let label = if self.label.is_empty() {
            String::new()
        } else {
            format!(" ({})", self.label)
        };
        let hint = self
            .hint
            .as_deref()
            .map_or_else(String::new, |hint| format!("\nhelp: {hint}"));
        format!("{}{label}{hint}", self.message)
    }
}

/// Formats problems as JSON.
pub fn problems_json(problems: &[PlacedProblem]) -> Value {
    let count = |severity: &str| {
        problems
            .iter()
            .filter(|problem| problem.severity == severity)
            .count()
    };
    json!({"errors": count("error"), "warnings": count("warning"), "problems": problems})
}

/// Formats problems as workflow commands of GitHub Actions, a line for each, which annotate the file.
pub fn problems_for_github(problems: &[PlacedProblem]) -> String {
    let lines = problems.iter().map(|problem| {
        format!(
            "::{} file={},line={},col={},endLine={},endColumn={},title=toolq check::{}",
            problem.severity,
            github_property(&escape(&problem.file)),
            problem.line,
            problem.column,
            problem.end_line,
            problem.end_column,
            github_data(&escape_lines(&problem.whole_text())),
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Escapes the message of a workflow command.
fn github_data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes a property of a workflow command.
fn github_property(text: &str) -> String {
    github_data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Formats problems as a SARIF log with one run.
pub fn problems_sarif(problems: &[PlacedProblem]) -> String {
    let results: Vec<Value> = problems.iter().map(sarif_result).collect();
    let driver = json!({
        "name": "toolq",
        "version": env!("CARGO_PKG_VERSION"),
        "rules": [{"id": "tools-file", "shortDescription": {"text": "A problem in tools.yaml"}}],
    });
    let run =
        json!({"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results});
    json!({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}).to_string()
}

fn sarif_result(problem: &PlacedProblem) -> Value {
    let region = json!({
        "startLine": problem.line, "startColumn": problem.column,
        "endLine": problem.end_line, "endColumn": problem.end_column,
    });
    let place = json!({"artifactLocation": {"uri": sarif_uri(&problem.file)}, "region": region});
    json!({
        "ruleId": "tools-file",
        "level": problem.severity,
        "message": {"text": problem.whole_text()},
        "locations": [{"physicalLocation": place}],
    })
}

/// Returns a path as a URI, relative if the path is.
fn sarif_uri(path: &str) -> String {
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    let path = path.strip_prefix("./").unwrap_or(path);
    let escaped = path.bytes().map(|byte| {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    });
    scheme.chars().map(String::from).chain(escaped).collect()
}

// Converts byte offsets to lines and columns.

/// A position in a text. Offsets are in bytes; `line` and `column` (in characters) count from 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct TextPosition {
    pub offset: usize,
    pub line_start: usize,
    pub line: usize,
    pub column: usize,
}

impl TextPosition {
    /// Returns the position at `offset`, or `None` if that is outside the text or within a character. Counts from
    /// `self` if it comes before `offset`: problems are sorted by position, so a text is scanned only once for all of
    /// them.
    pub fn advance_to(self, text: &str, offset: usize) -> Option<Self> {
        let from = if offset < self.offset {
            Self::default()
        } else {
            self
        };
        text.get(from.offset..offset)?;
        let starts = || line_starts(text, from.offset..offset);
        let (line_start, column) = match starts().last() {
            Some(start) => (start, 0),
            None => (from.line_start, from.column),
        };
        let column_start = line_start.max(from.offset);
        Some(Self {
            offset,
            line_start,
            line: from.line + starts().count(),
            column: column + text[column_start..offset].chars().count(),
        })
    }
}

#[cfg(test)]
mod problem_report_tests {
    use super::*;
    use toolq_core::types::Span;

    fn problem() -> PlacedProblem {
        let text = "version: 1\nü: {a: \"x\",\n  b: 2}\n";
        let span = Span { start: 18, len: 12 };
        let problem = FileProblem::error(span, "100% wrong", "here").with_hint("a\nb");
        PlacedProblem::new(&problem, "a dir/tools,1.yaml", text, &Mask::default())
    }

    #[test]
    fn places_count_characters_from_1() {
        let placed = problem();
        assert_eq!((placed.line, placed.column), (2, 7));
        assert_eq!((placed.end_line, placed.end_column), (3, 7));
    }

    #[test]
    fn github_commands_stay_on_one_line() {
        assert_eq!(
            problems_for_github(&[problem()]),
            "::error file=a dir/tools%2C1.yaml,line=2,col=7,endLine=3,endColumn=7,title=toolq check::100%25 wrong (here)%0Ahelp: a%0Ab"
        );
    }

    #[test]
    fn sarif_names_the_place() {
        let log: Value = serde_json::from_str(&problems_sarif(&[problem()])).unwrap();
        let result = &log["runs"][0]["results"][0];
        assert_eq!(result["level"], "error");
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "a%20dir/tools%2C1.yaml");
        assert_eq!(place["region"]["startColumn"], 7);
        assert_eq!(
            result["ruleId"],
            log["runs"][0]["tool"]["driver"]["rules"][0]["id"]
        );
    }
}

#[cfg(test)]
mod text_position_tests {
    use super::*;

    #[test]
    fn advancing_equals_counting_from_the_start() {
        let text = "a\n名前: x\r\n\n  {é: 1, é: 2}\nend\r\r\nx";
        let places: Vec<usize> = (0..=text.len())
            .filter(|at| text.is_char_boundary(*at))
            .collect();
        for (from, to) in places
            .iter()
            .flat_map(|from| places.iter().map(move |to| (*from, *to)))
        {
            let place = TextPosition::default().advance_to(text, from).unwrap();
            let place = place.advance_to(text, to).unwrap();
            let before = &text[..to];
            let is_within_break = before.ends_with('\r') && text[to..].starts_with('\n');
            let counted = &before[..to - usize::from(is_within_break)];
            let line_start = counted.rfind(['\n', '\r']).map_or(0, |at| at + 1);
            let breaks = counted.replace("\r\n", "\n").replace('\r', "\n");
            assert_eq!(place.line, breaks.matches('\n').count());
            assert_eq!(place.line_start, line_start);
            assert_eq!(place.column, before[line_start..].chars().count());
        }
        assert!(
            TextPosition::default().advance_to(text, 3).is_none(),
            "within a character"
        );
        assert!(
            TextPosition::default()
                .advance_to(text, text.len() + 1)
                .is_none()
        );
    }
}
