//! The problems of a file for other programs: as JSON, as annotations of GitHub Actions, or as SARIF.

use serde::Serialize;
use serde_json::{Value, json};

use crate::output::diagnostics::escape_lines;
use redact::Mask;
use toolq_core::text::{escape, line_starts};
use toolq_core::types::{FileProblem, Severity};

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
mod tests {
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
