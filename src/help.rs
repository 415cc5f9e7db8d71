//! What `--help` and the man page say beside the commands: examples and exit codes.

use toolq_core::text::wrap_words;

/// Example commands, each with what it does.
pub(crate) const EXAMPLES: [(&str, &str); 5] = [
    (
        "curl … /v1/messages | toolq run",
        "answer the calls of a model's response",
    ),
    ("toolq plan response.json", "show what would run, and why"),
    (
        "toolq replay transcripts/",
        "check recordings against the current tools",
    ),
    ("toolq check", "report every problem in tools.yaml"),
    ("toolq log show", "show the calls of the latest session"),
];

/// Exit codes, each with its meaning.
pub(crate) const EXIT_CODES: [(&str, &str); 10] = [
    ("0", "every call was answered; an error result is an answer"),
    (
        "1",
        "run --fail-on-error, call: a result is an error; replay: a call differs; check, plan --strict, servers, tools: problems found",
    ),
    ("2", "usage, tools.yaml, or input is wrong; nothing ran"),
    (
        "3",
        "a tool is paused, a budget is used up, a call is in doubt, an agent could not continue, or a stream broke off; every call is still answered",
    ),
    ("4", "the session log or the memory can't be used"),
    ("5", "run: there are no calls to answer"),
    (
        "6",
        "a call waits for an approval; every call is still answered",
    ),
    (
        "71",
        "the system has no threads or descriptors left; nothing ran",
    ),
    ("74", "results could not be written"),
    (
        "129, 130, 131, 143",
        "hung up, interrupted, quit, or terminated; every call is still answered",
    ),
];

/// Width of the longest command, in columns.
pub(crate) const COMMAND_WIDTH: usize = 9;

/// Width of the lines after the flags, in columns. clap would wrap a longer line without its indentation.
const AFTER_HELP_WIDTH: usize = 80;

pub(crate) fn after_help() -> String {
    let (examples, codes) = (format_rows(&EXAMPLES, 33), format_rows(&EXIT_CODES, 3));
    format!("Examples:\n{examples}\nExit codes:\n{}", codes.trim_end())
}

/// Formats terms of up to `term_width` columns, each followed by its meaning. A longer term has a line of its own.
pub(crate) fn format_rows(rows: &[(&str, &str)], term_width: usize) -> String {
    let indent = " ".repeat(2 + term_width + 1);
    let mut text = String::new();
    for (term, meaning) in rows {
        let mut head = format!("  {term:term_width$} ");
        if term.len() > term_width {
            text += head.trim_end();
            text.push('\n');
            head.clone_from(&indent);
        }
        text += wrap_words(&(head + meaning), AFTER_HELP_WIDTH, &indent).trim_end();
        text.push('\n');
    }
    text
}
