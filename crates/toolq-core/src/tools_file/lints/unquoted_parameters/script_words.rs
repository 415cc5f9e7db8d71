//! Reads the words of a script: quotes, expansions and redirections.

use crate::tools_file::lints::unquoted_parameters::parameter_syntax::{
    assignment_len, braced_len, parameter_name,
};
use crate::tools_file::lints::unquoted_parameters::script_scanner::ScriptScanner;

impl<'s> ScriptScanner<'s> {
    /// Reads one word. Records its parameters unless it stays `whole`.
    pub(super) fn scan_word(&mut self, whole: bool) {
        let start = self.position;
        if let Some(len) = assignment_len(self.rest()) {
            self.skip(len);
            if self.peek() == Some('(') {
                self.skip(1);
                return self.scan_commands(Some(')'), true);
            }
        }
        while let Some(c) = self.peek() {
            match c {
                '\'' => {
                    self.skip(1);
                    self.skip_past("'");
                }
                '"' => self.scan_double_quotes(),
                '\\' => self.skip_escaped(),
                '$' => self.scan_dollar(whole),
                '`' if self.in_backticks => break,
                '`' => self.scan_backticks(),
                '(' | ')' | '<' | '>' | ';' | '&' | '|' => break,
                _ if c.is_whitespace() => break,
                _ => self.skip(c.len_utf8()),
            }
        }
        if self.position == start {
            // No character may stop the scanner.
            self.skip(self.peek().map_or(1, char::len_utf8));
        }
    }

    fn scan_double_quotes(&mut self) {
        self.skip(1);
        while let Some(c) = self.peek() {
            match c {
                '"' => return self.skip(1),
                '\\' => self.skip_escaped(),
                '$' => self.scan_dollar(true),
                '`' if self.in_backticks => break,
                '`' => self.scan_backticks(),
                _ => self.skip(c.len_utf8()),
            }
        }
    }

    fn scan_backticks(&mut self) {
        self.skip(1);
        self.in_backticks = true;
        self.scan_commands(Some('`'), false);
        self.in_backticks = false;
    }

    fn skip_escaped(&mut self) {
        let escaped = self.rest().chars().nth(1).map_or(0, char::len_utf8);
        self.skip(1 + escaped);
    }

    /// Reads what begins with a dollar sign: a parameter, a command or arithmetic.
    fn scan_dollar(&mut self, whole: bool) {
        let after = &self.rest()[1..];
        if after.starts_with("((") {
            self.skip_past("))");
        } else if after.starts_with('(') {
            self.skip(2);
            self.scan_commands(Some(')'), false);
        } else if after.starts_with('\'') && !whole {
            self.skip(2);
            while let Some(c) = self.peek().filter(|c| *c != '\'') {
                if c == '\\' {
                    self.skip_escaped();
                } else {
                    self.skip(c.len_utf8());
                }
            }
            self.skip(1);
        } else if let Some(inner) = after.strip_prefix('{') {
            let name = parameter_name(inner).unwrap_or_default();
            let len = braced_len(&self.rest()[1..]);
            // `${1+x}` expands to `x` instead of the value.
            let operator = inner[name.len()..].trim_start_matches(':');
            if !name.is_empty() && !operator.starts_with('+') {
                self.record(1 + len, name, whole);
            }
            self.skip(1 + len);
        } else if after.starts_with(['$', '#', '?', '!', '-']) {
            self.skip(2);
        } else if let Some(name) = parameter_name(after) {
            // Without braces, `$12` is `$1` and a `2`.
            let is_digit = name.starts_with(|c: char| c.is_ascii_digit());
            let name = if is_digit { &name[..1] } else { name };
            self.record(1 + name.len(), name, whole);
            self.skip(1 + name.len());
        } else {
            self.skip(1);
        }
    }

    fn record(&mut self, len: usize, name: &'s str, whole: bool) {
        if !whole {
            self.found.push((self.position..self.position + len, name));
        }
    }

    /// Reads the operator of a redirection, and its target if that isn't split.
    pub(super) fn scan_redirection(&mut self) {
        let operator = self.rest();
        if operator.starts_with("<<<") {
            self.skip(3);
            self.skip_blanks();
            self.scan_word(true);
        } else if operator.starts_with("<<") {
            self.skip(if operator.starts_with("<<-") { 3 } else { 2 });
            self.skip_blanks();
            let start = self.position;
            self.scan_word(true);
            let delimiter = &self.script[start..self.position];
            self.here_documents
                .push(delimiter.replace(['\'', '"', '\\'], ""));
        } else {
            self.skip(1);
        }
    }

    fn skip_blanks(&mut self) {
        let blanks = self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
        self.skip(blanks);
    }

    /// Skips the here-documents that begin here.
    pub(super) fn skip_here_documents(&mut self) {
        for delimiter in std::mem::take(&mut self.here_documents) {
            while !self.rest().is_empty() {
                let line = self.rest().lines().next().unwrap_or_default();
                self.skip(line.len() + 1);
                if line.trim_start_matches('\t') == delimiter {
                    break;
                }
            }
        }
    }
}
