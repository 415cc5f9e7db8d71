//! Parsing tools.yaml: the tools that result, or the problems and their positions.
//!
//! Most tests are tables. A line for [`assert_refused`] or [`assert_warned`] has three cells separated by `⇒`: a fragment of
//! a file, the text that its one problem points to, and a part of the problem's message. A line for [`assert_no_problems`]
//! has only the fragment. `⏎` means a line break in the file.

mod commands;
mod file_structure;
mod foreign_syntax;
mod placeholders;
mod report_formats;
mod requests;
mod schemas;
mod settings;

use std::path::Path;

use toolq_core::tools_file::{ParsedToolsFile, parse_tools_file};
use toolq_core::types::{Severity, ToolsConfig};

fn load_text(text: &str) -> ParsedToolsFile {
    parse_tools_file(text, Path::new("/srv/tools"), Path::new("/srv"))
}

fn load_tools(text: &str) -> ToolsConfig {
    let loaded = load_text(text);
    let problems = loaded.problems;
    let tools = loaded.tools;
    tools.unwrap_or_else(|| panic!("{text}\n{problems:#?}"))
}

/// Returns a file with one tool `t` that has `keys` and the inputs `a`, `n` (both required), `o`, `list`, `text` and `number`.
/// Only `text` and `number` may begin with `-`.
fn file_with_tool(keys: &str) -> String {
    let keys = keys.replace('\n', "\n    ");
    format!(
        "tools:
  t:
    input_schema:
      type: object
      properties:
        a: {{type: string, pattern: '^[^-]'}}
        n: {{type: integer, minimum: 0}}
        o: {{type: string, pattern: '^[^-]'}}
        list: {{type: array, items: {{type: string, pattern: '^[^-]'}}}}
        text: {{type: string}}
        number: {{type: number}}
      required: [a, n, text, number]
    {keys}
"
    )
}

/// Returns the same file with `lines` at the top.
fn file_with_lines(lines: &str) -> String {
    format!("{lines}\n{}", file_with_tool(""))
}

/// Asserts that each line causes exactly one error.
fn assert_refused(frame: impl Fn(&str) -> String, table: &str) {
    assert_one_problem(Severity::Error, frame, table);
}

/// Asserts that each line is accepted with exactly one warning.
fn assert_warned(frame: impl Fn(&str) -> String, table: &str) {
    assert_one_problem(Severity::Warning, frame, table);
}

/// Asserts that each line is accepted without any problem.
fn assert_no_problems(frame: impl Fn(&str) -> String, table: &str) {
    for fragment in table_rows(table) {
        let text = frame(&expand_line_breaks(fragment));
        let problems = load_text(&text).problems;
        assert!(problems.is_empty(), "{text}\n{problems:#?}");
    }
}

fn assert_one_problem(severity: Severity, frame: impl Fn(&str) -> String, table: &str) {
    for line in table_rows(table) {
        let cells: Vec<&str> = line.split('⇒').map(str::trim).collect();
        let [fragment, expected_span, expected_message] = cells.as_slice() else {
            panic!("expected three cells: {line}");
        };
        let text = frame(&expand_line_breaks(fragment));
        let loaded = load_text(&text);
        let is_refused = severity == Severity::Error;
        assert_eq!(
            loaded.tools.is_none(),
            is_refused,
            "{text}{:#?}",
            loaded.problems
        );
        let [problem] = loaded.problems.as_slice() else {
            panic!("{text}expected one problem: {:#?}", loaded.problems);
        };
        let span = &text[problem.span.start..problem.span.start + problem.span.len];
        assert_eq!(problem.severity, severity, "{text}{problem:#?}");
        assert_eq!(span, *expected_span, "{text}{problem:#?}");
        assert!(
            problem.message.contains(expected_message),
            "{text}{problem:#?}"
        );
    }
}

fn expand_line_breaks(fragment: &str) -> String {
    fragment.replace(" ⏎ ", "\n").replace("⏎ ", "\n")
}

fn table_rows(table: &str) -> impl Iterator<Item = &str> {
    table.lines().map(str::trim).filter(|line| !line.is_empty())
}
