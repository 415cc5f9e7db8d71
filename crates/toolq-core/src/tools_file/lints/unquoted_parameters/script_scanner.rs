//! Finds the parameters of a shell script that shells split into words: `$1` outside of quotes.
//!
//! This reads shell syntax only as far as it decides about splitting. Where the author splits on purpose, as in
//! `for word in $1`, nothing is found.

use std::ops::Range;

use crate::tools_file::lints::unquoted_parameters::parameter_syntax::assignment_len;

/// Builtins whose arguments of the form `name=value` are assignments, which aren't split.
const DECLARING_BUILTINS: [&str; 5] = ["declare", "export", "local", "readonly", "typeset"];
/// Commands whose arguments are split on purpose, or to no effect.
const SPLITTING_COMMANDS: [&str; 4] = [":", "for", "select", "set"];
/// Reserved words that a command follows.
const LEADING_WORDS: [&str; 11] = [
    "!", "do", "elif", "else", "if", "then", "time", "until", "while", "{", "}",
];

/// Maximum nesting of commands in each other. What is nested deeper isn't read.
const MAX_NESTING: usize = 32;

/// Returns where `script` has an unquoted parameter, with its name: `1`, `@` or `NAME`.
pub(super) fn find_split_parameters(script: &str) -> Vec<(Range<usize>, &str)> {
    let mut scanner = ScriptScanner {
        script,
        position: 0,
        here_documents: Vec::new(),
        found: Vec::new(),
        in_backticks: false,
        nesting: 0,
    };
    scanner.scan_commands(None, false);
    scanner.found
}

/// Reads a script once, from its beginning to its end.
pub(super) struct ScriptScanner<'s> {
    pub(super) script: &'s str,
    pub(super) position: usize,
    /// The delimiters of the here-documents that begin on the next line.
    pub(super) here_documents: Vec<String>,
    pub(super) found: Vec<(Range<usize>, &'s str)>,
    /// Within backticks, the next one ends the commands.
    pub(super) in_backticks: bool,
    nesting: usize,
}

/// Where in a `case` command the scanner is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CasePart {
    Subject,
    Pattern,
    Commands,
}

/// What has been read of a list of commands.
#[derive(Default)]
struct CommandState<'s> {
    /// The name of the current command, once it has been read.
    command: Option<&'s str>,
    cases: Vec<CasePart>,
    open_subshells: usize,
}

impl<'s> ScriptScanner<'s> {
    pub(super) fn rest(&self) -> &'s str {
        &self.script[self.position..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Skips `count` bytes, or everything.
    pub(super) fn skip(&mut self, count: usize) {
        self.position = (self.position + count).min(self.script.len());
    }

    /// Skips everything up to and including `text`.
    pub(super) fn skip_past(&mut self, text: &str) {
        let found = self.rest().find(text).map(|at| at + text.len());
        self.skip(found.unwrap_or(self.rest().len()));
    }

    /// Reads commands up to and including `end`, or to the end of the script. In an array, all words are `whole`.
    pub(super) fn scan_commands(&mut self, end: Option<char>, whole: bool) {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            self.position = self.script.len();
        }
        self.scan_nested_commands(end, whole);
        self.nesting -= 1;
    }

    fn scan_nested_commands(&mut self, end: Option<char>, whole: bool) {
        let mut state = CommandState::default();
        while let Some(c) = self.peek() {
            let in_pattern = state.cases.last() == Some(&CasePart::Pattern);
            let in_condition = state.command == Some("[[");
            match c {
                _ if Some(c) == end && !in_pattern && state.open_subshells == 0 => {
                    return self.skip(1);
                }
                '\n' => {
                    self.skip(1);
                    self.skip_here_documents();
                    state.command = state.command.filter(|_| in_condition);
                }
                _ if c.is_whitespace() => self.skip(c.len_utf8()),
                '#' => self.skip(self.rest().find('\n').unwrap_or(self.rest().len())),
                ';' if self.rest().starts_with(";;") || self.rest().starts_with(";&") => {
                    self.skip(2);
                    if let Some(part) = state.cases.last_mut() {
                        *part = CasePart::Pattern;
                    }
                    state.command = None;
                }
                '(' if state.command.is_none() && self.rest().starts_with("((") => {
                    self.skip_past("))");
                }
                '(' | ')' if in_condition => self.skip(1),
                '(' => {
                    self.skip(1);
                    if !in_pattern {
                        state.open_subshells += 1;
                        state.command = None;
                    }
                }
                ')' => {
                    self.skip(1);
                    state.command = None;
                    match state.cases.last_mut() {
                        Some(part) if in_pattern => *part = CasePart::Commands,
                        _ => state.open_subshells = state.open_subshells.saturating_sub(1),
                    }
                }
                '<' | '>' if !in_condition => self.scan_redirection(),
                ';' | '&' | '|' | '<' | '>' => {
                    self.skip(1);
                    state.command = state.command.filter(|_| in_condition);
                }
                _ => self.scan_command_word(&mut state, whole),
            }
        }
    }

    /// Reads one word of a command, and what it means for the words after it.
    fn scan_command_word(&mut self, state: &mut CommandState<'s>, whole: bool) {
        let case = state.cases.last().copied();
        let (start, command) = (self.position, state.command);
        let is_assignment = assignment_len(self.rest()).is_some();
        let is_whole = whole
            || matches!(case, Some(CasePart::Subject | CasePart::Pattern))
            || command == Some("[[")
            || command.is_some_and(|command| SPLITTING_COMMANDS.contains(&command))
            || is_assignment && command.is_none_or(|command| DECLARING_BUILTINS.contains(&command));
        self.scan_word(is_whole);
        let word = &self.script[start..self.position];
        match (case, command) {
            (Some(CasePart::Subject), _) if word == "in" => {
                state.set_case(CasePart::Pattern);
            }
            (Some(CasePart::Pattern), _) | (_, None) if word == "esac" && case.is_some() => {
                state.cases.pop();
                state.command = Some(word);
            }
            (Some(CasePart::Subject | CasePart::Pattern), _) => {}
            (_, Some("[[")) if word == "]]" => state.command = Some(word),
            (_, Some(_)) => {}
            (_, None) if word == "case" => state.cases.push(CasePart::Subject),
            (_, None) if is_assignment || LEADING_WORDS.contains(&word) => {}
            (_, None) => state.command = Some(word),
        }
    }
}

impl CommandState<'_> {
    fn set_case(&mut self, part: CasePart) {
        if let Some(last) = self.cases.last_mut() {
            *last = part;
        }
    }
}
