//! tools.yaml → tools, or problems at their places.
//!
//! Most tests are tables. A line of `refused` or `warned` has a piece of a file, the text under which the one problem
//! stands, and words of its message, with `⇒` between them; a line of `quiet` has only the piece. `⏎` begins a new line of
//! the file.

mod commands;
mod form;
mod placeholders;
mod requests;
mod schemas;
mod settings;
mod slips;

use std::path::Path;

use toolq_core::tools_file::{Loaded, load};
use toolq_core::types::{Severity, Tools};

fn read(text: &str) -> Loaded {
    load(text, Path::new("/srv/tools"), Path::new("/srv"))
}

fn tools(text: &str) -> Tools {
    let loaded = read(text);
    let problems = loaded.problems;
    let tools = loaded.tools;
    tools.unwrap_or_else(|| panic!("{text}\n{problems:#?}"))
}

/// A file with one tool `t`, whose input has `a`, `n` (both required), `o` and `list`.
fn tool(keys: &str) -> String {
    let keys = keys.replace('\n', "\n    ");
    format!(
        "tools:
  t:
    input_schema:
      type: object
      properties: {{a: {{type: string}}, n: {{type: integer}}, o: {{type: string}}, list: {{type: array}}}}
      required: [a, n]
    {keys}
"
    )
}

/// The same with lines before it.
fn file(lines: &str) -> String {
    format!("{lines}\n{}", tool(""))
}

/// Each line is refused with exactly one error.
fn refused(frame: impl Fn(&str) -> String, table: &str) {
    expect_one(Severity::Error, frame, table);
}

/// Each line is taken with exactly one warning.
fn warned(frame: impl Fn(&str) -> String, table: &str) {
    expect_one(Severity::Warning, frame, table);
}

/// Each line is taken without a word.
fn quiet(frame: impl Fn(&str) -> String, table: &str) {
    for piece in lines(table) {
        let text = frame(&on_lines(piece));
        let problems = read(&text).problems;
        assert!(problems.is_empty(), "{text}\n{problems:#?}");
    }
}

fn expect_one(severity: Severity, frame: impl Fn(&str) -> String, table: &str) {
    for line in lines(table) {
        let cells: Vec<&str> = line.split('⇒').map(str::trim).collect();
        let [piece, place, words] = cells.as_slice() else {
            panic!("three cells: {line}");
        };
        let text = frame(&on_lines(piece));
        let loaded = read(&text);
        let is_refused = severity == Severity::Error;
        assert_eq!(
            loaded.tools.is_none(),
            is_refused,
            "{text}{:#?}",
            loaded.problems
        );
        let [problem] = loaded.problems.as_slice() else {
            panic!("{text}one problem expected: {:#?}", loaded.problems);
        };
        let at = &text[problem.span.start..problem.span.start + problem.span.len];
        assert_eq!(problem.severity, severity, "{text}{problem:#?}");
        assert_eq!(at, *place, "{text}{problem:#?}");
        assert!(problem.message.contains(words), "{text}{problem:#?}");
    }
}

fn on_lines(piece: &str) -> String {
    piece.replace(" ⏎ ", "\n").replace("⏎ ", "\n")
}

fn lines(table: &str) -> impl Iterator<Item = &str> {
    table.lines().map(str::trim).filter(|line| !line.is_empty())
}
