//! Splits a shell script into commands and words, as far as a lint needs it: with the parameters that each word expands.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::str::Chars;

/// Words that a command follows.
const KEYWORDS: [&str; 10] = [
    "if", "then", "elif", "else", "while", "until", "do", "!", "{", "time",
];

/// A part of a word.
#[derive(Debug, PartialEq, Eq)]
enum WordPart {
    Text(String),
    /// A parameter, such as `$1` or `${NAME:-x}`.
    Parameter(String),
}

/// A word of a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ShellWord(Vec<WordPart>);

impl ShellWord {
    /// Returns the names of the parameters that it expands.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            WordPart::Parameter(name) => Some(name.as_str()),
            WordPart::Text(_) => None,
        })
    }

    /// Returns its text, without parameters.
    pub(crate) fn plain_text(&self) -> String {
        let texts = self.0.iter().filter_map(|part| match part {
            WordPart::Text(text) => Some(text.as_str()),
            WordPart::Parameter(_) => None,
        });
        texts.collect()
    }

    /// Returns its text with `{x}` for each of `values`, and `$` for every other parameter.
    pub(crate) fn as_template(&self, values: &BTreeSet<String>) -> String {
        let texts = self.0.iter().map(|part| match part {
            WordPart::Text(text) => text.as_str(),
            WordPart::Parameter(name) if values.contains(name) => "{x}",
            WordPart::Parameter(_) => "$",
        });
        texts.collect()
    }

    /// Returns the variable that it sets.
    pub(crate) fn assigned_variable(&self) -> Option<&str> {
        let Some(WordPart::Text(text)) = self.0.first() else {
            return None;
        };
        let (name, _) = text.split_once('=')?;
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        is_name.then_some(name)
    }

    /// Whether it begins with one of `values`.
    pub(crate) fn begins_with_parameter(&self, values: &BTreeSet<String>) -> bool {
        matches!(self.0.first(), Some(WordPart::Parameter(name)) if values.contains(name))
    }

    fn push_text(&mut self, c: char) {
        match self.0.last_mut() {
            Some(WordPart::Text(text)) => text.push(c),
            _ => self.0.push(WordPart::Text(c.to_string())),
        }
    }
}

/// Splits a script into its commands, those in `$(…)` included.
pub(crate) fn split_commands(script: &str) -> Vec<Vec<ShellWord>> {
    let mut splitter = CommandSplitter {
        rest: script.chars().peekable(),
        commands: Vec::new(),
    };
    while splitter.rest.peek().is_some() {
        splitter.read_commands();
    }
    splitter.commands
}

struct CommandSplitter<'s> {
    rest: Peekable<Chars<'s>>,
    commands: Vec<Vec<ShellWord>>,
}

impl CommandSplitter<'_> {
    /// Reads commands up to the end, or to the `)` that ends a substitution.
    fn read_commands(&mut self) {
        let mut words: Vec<ShellWord> = Vec::new();
        let mut word: Option<ShellWord> = None;
        while let Some(c) = self.rest.next() {
            match c {
                '#' if word.is_none() => while self.rest.next_if(|c| *c != '\n').is_some() {},
                ' ' | '\t' => end_word(&mut word, &mut words),
                '(' if self.rest.next_if_eq(&'(').is_some() => self.skip_arithmetic(),
                ';' | '&' | '|' | '\n' | '(' | '`' => {
                    end_word(&mut word, &mut words);
                    self.commands.push(std::mem::take(&mut words));
                }
                ')' => break,
                '<' | '>' => {
                    end_word(&mut word, &mut words);
                    word.get_or_insert_default().push_text(c);
                }
                '\'' => {
                    let word = word.get_or_insert_default();
                    while let Some(c) = self.rest.next_if(|c| *c != '\'') {
                        word.push_text(c);
                    }
                    self.rest.next();
                }
                '"' => self.read_quoted(word.get_or_insert_default()),
                '\\' => {
                    let escaped = self.rest.next().unwrap_or_default();
                    word.get_or_insert_default().push_text(escaped);
                }
                '$' => self.read_expansion(word.get_or_insert_default()),
                other => word.get_or_insert_default().push_text(other),
            }
        }
        end_word(&mut word, &mut words);
        self.commands.push(words);
    }

    fn read_quoted(&mut self, word: &mut ShellWord) {
        while let Some(c) = self.rest.next() {
            match c {
                '"' => return,
                '\\' => word.push_text(self.rest.next().unwrap_or_default()),
                '$' => self.read_expansion(word),
                other => word.push_text(other),
            }
        }
    }

    /// Skips an expression up to its `))`.
    fn skip_arithmetic(&mut self) {
        let mut depth = 2_usize;
        for c in self.rest.by_ref() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// Reads what follows a `$`.
    fn read_expansion(&mut self, word: &mut ShellWord) {
        match self.rest.peek().copied() {
            Some('(') => {
                self.rest.next();
                if self.rest.next_if_eq(&'(').is_some() {
                    self.skip_arithmetic();
                } else {
                    self.read_commands();
                }
                word.push_text('$');
            }
            Some('{') => {
                self.rest.next();
                let mut inner = String::new();
                while let Some(c) = self.rest.next_if(|c| *c != '}') {
                    inner.push(c);
                }
                self.rest.next();
                let name = inner.trim_start_matches(['!', '#']);
                let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                let name = name[..end.unwrap_or(name.len())].to_owned();
                word.0.push(WordPart::Parameter(name));
            }
            Some(c) if c.is_ascii_digit() || matches!(c, '@' | '*' | '#' | '?' | '$' | '!') => {
                self.rest.next();
                let name = c.to_string();
                word.0.push(WordPart::Parameter(name));
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let mut name = String::new();
                while let Some(c) = self
                    .rest
                    .next_if(|c| c.is_ascii_alphanumeric() || *c == '_')
                {
                    name.push(c);
                }
                word.0.push(WordPart::Parameter(name));
            }
            _ => word.push_text('$'),
        }
    }
}

/// Adds a word, unless it is a keyword before a command.
fn end_word(word: &mut Option<ShellWord>, words: &mut Vec<ShellWord>) {
    let Some(word) = word.take() else { return };
    let is_keyword = words.is_empty()
        && word.parameters().next().is_none()
        && KEYWORDS.contains(&word.plain_text().as_str());
    if !is_keyword {
        words.push(word);
    }
}
