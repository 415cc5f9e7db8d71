//! Recognizes simple patterns: those that are evidently valid and small, in the dialect of JSON Schema and when compiled.
//! Parsing and compiling a pattern takes much longer.

#[cfg(test)]
mod tests;

use std::iter::Peekable;
use std::str::Chars;

use crate::json_schema::validation_options::MAX_PATTERN_BYTES;

/// Maximum nesting depth of groups.
const MAX_DEPTH: usize = 16;
/// Maximum number of repetitions that may be written.
const MAX_REPETITIONS: usize = 10_000;
/// More bytes than any engine uses for a letter, or for a class of ASCII letters.
const SMALL_ATOM_BYTES: usize = 1 << 10;
/// More bytes than any engine uses for any character but a line break.
const ANY_ATOM_BYTES: usize = 2 << 10;
/// More bytes than any engine uses for a class whose members aren't only ASCII letters.
const LARGE_ATOM_BYTES: usize = 4 << 10;

/// Returns whether `pattern` is simple. One that isn't may be valid all the same.
pub(crate) fn is_simple_pattern(pattern: &str) -> bool {
    let mut reader = PatternReader {
        rest: pattern.chars().peekable(),
    };
    let bytes = reader.read_alternatives(0);
    reader.rest.next().is_none() && bytes.is_some_and(|bytes| bytes <= MAX_PATTERN_BYTES)
}

/// Reads a pattern. Each method returns how many bytes the part that it reads may have when it is compiled, or `None` if
/// it isn't simple.
struct PatternReader<'p> {
    rest: Peekable<Chars<'p>>,
}

impl PatternReader<'_> {
    /// Reads up to the end of a group or of the pattern.
    fn read_alternatives(&mut self, depth: usize) -> Option<usize> {
        let mut bytes = self.read_sequence(depth)?;
        while self.rest.next_if_eq(&'|').is_some() {
            bytes = bytes.checked_add(self.read_sequence(depth)?)?;
        }
        Some(bytes)
    }

    fn read_sequence(&mut self, depth: usize) -> Option<usize> {
        let mut bytes = 0_usize;
        let mut is_empty = true;
        while let Some(next) = self.rest.next_if(|next| !matches!(next, '|' | ')')) {
            is_empty = false;
            let atom = match next {
                '^' | '$' => {
                    bytes = bytes.checked_add(SMALL_ATOM_BYTES)?;
                    continue;
                }
                '.' => ANY_ATOM_BYTES,
                '[' => self.read_class()?,
                '(' => self.read_group(depth)?,
                '\\' => self.read_escape()?,
                literal if is_simple_literal(literal) => SMALL_ATOM_BYTES,
                _ => return None,
            };
            bytes = bytes.checked_add(atom.checked_mul(self.read_repetitions()?)?)?;
        }
        (!is_empty).then_some(bytes)
    }

    /// Reads a group after its opening parenthesis.
    fn read_group(&mut self, depth: usize) -> Option<usize> {
        if depth == MAX_DEPTH {
            return None;
        }
        if self.rest.next_if_eq(&'?').is_some() {
            self.rest.next_if_eq(&':')?;
        }
        let bytes = self.read_alternatives(depth + 1)?;
        self.rest.next_if_eq(&')')?;
        bytes.checked_add(SMALL_ATOM_BYTES)
    }

    /// Reads an escape after its backslash.
    fn read_escape(&mut self) -> Option<usize> {
        match self.rest.next()? {
            'D' | 'S' | 'W' | 's' => Some(LARGE_ATOM_BYTES),
            'd' | 'n' | 'r' | 't' | 'w' | '$' | '(' | ')' | '*' | '+' | '-' | '.' | '/' | '?'
            | '[' | '\\' | ']' | '^' | '{' | '|' | '}' => Some(SMALL_ATOM_BYTES),
            _ => None,
        }
    }

    /// Reads a class after its opening bracket. A hyphen must be escaped, at the end, or between two letters or digits.
    fn read_class(&mut self) -> Option<usize> {
        let is_negated = self.rest.next_if_eq(&'^').is_some();
        let mut bytes = if is_negated {
            LARGE_ATOM_BYTES
        } else {
            SMALL_ATOM_BYTES
        };
        let mut is_empty = true;
        loop {
            match self.rest.next()? {
                ']' if !is_empty => return Some(bytes),
                '\\' => bytes = bytes.max(self.read_escape()?),
                // At the end, where it can be nothing but itself.
                '-' if !is_empty => {
                    self.rest.next_if_eq(&']')?;
                    return Some(bytes);
                }
                first if first.is_ascii_alphanumeric() => self.read_range_end(first)?,
                ' ' | '!' | '#' | '%' | '\'' | '*' | '+' | ',' | '.' | '/' | ':' | ';' | '='
                | '?' | '@' | '_' | '(' | ')' | '$' => {}
                _ => return None,
            }
            is_empty = false;
        }
    }

    /// Reads the rest of a range that `first` begins, if it does.
    fn read_range_end(&mut self, first: char) -> Option<()> {
        let mut ahead = self.rest.clone();
        if ahead.next() != Some('-') || ahead.peek() == Some(&']') {
            return Some(());
        }
        self.rest = ahead;
        let last = self.rest.next()?;
        (last.is_ascii_alphanumeric() && first <= last).then_some(())
    }

    /// Reads how often an atom repeats, and returns how often it is compiled.
    fn read_repetitions(&mut self) -> Option<usize> {
        let copies = match self.rest.peek() {
            Some('*' | '?') => 2,
            Some('+') => 3,
            Some('{') => {
                self.rest.next();
                return self.read_counts();
            }
            _ => return Some(1),
        };
        self.rest.next();
        self.ends_repetition().then_some(copies)
    }

    /// Reads `n}`, `n,}` or `n,m}`.
    fn read_counts(&mut self) -> Option<usize> {
        let min = self.read_count()?;
        let max = match self.rest.next()? {
            '}' => min,
            ',' if self.rest.next_if_eq(&'}').is_some() => min + 1,
            ',' => {
                let max = self.read_count()?;
                self.rest.next_if_eq(&'}')?;
                max
            }
            _ => return None,
        };
        // One more for what joins the copies.
        (min <= max && self.ends_repetition()).then_some(max + 1)
    }

    fn read_count(&mut self) -> Option<usize> {
        let mut count = self.rest.next()?.to_digit(10)? as usize;
        while let Some(digit) = self.rest.peek().and_then(|next| next.to_digit(10)) {
            self.rest.next();
            count = 10 * count + digit as usize;
            if count > MAX_REPETITIONS {
                return None;
            }
        }
        Some(count)
    }

    /// Whether no other repetition follows: some engines take that for a possessive or a nested one.
    fn ends_repetition(&mut self) -> bool {
        !matches!(self.rest.peek(), Some('*' | '+' | '?' | '{'))
    }
}

/// Whether a character matches itself outside of a class.
fn is_simple_literal(literal: char) -> bool {
    literal.is_ascii_alphanumeric()
        || matches!(
            literal,
            ' ' | '!'
                | '"'
                | '#'
                | '%'
                | '&'
                | '\''
                | ','
                | '-'
                | '/'
                | ':'
                | ';'
                | '<'
                | '='
                | '>'
                | '@'
                | '_'
                | '`'
                | '~'
        )
}
