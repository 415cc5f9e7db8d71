//! Steps through valid JSON from value to value. Invalid JSON ends the walk, but never panics.

use crate::json::value::{JsonMember, JsonText, ParsedObject};

/// A position in valid JSON.
#[derive(Debug)]
pub(crate) struct JsonCursor<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> JsonCursor<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, position: 0 }
    }

    /// Skips whitespace and returns the next byte.
    pub fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.position)?, b' ' | b'\t' | b'\r' | b'\n') {
            self.position += 1;
        }
        bytes.get(self.position).copied()
    }

    /// Consumes `byte` if it is next.
    pub fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.position += usize::from(found);
        found
    }

    /// Consumes the next value and parses its members, if it is an object.
    pub fn read_object(&mut self) -> Option<ParsedObject<'a>> {
        self.peek();
        let start = self.position;
        let members = self.read_members();
        let json = self.text.get(start..self.position).map(JsonText::new);
        if let (Some(members), Some(json)) = (members, json) {
            return Some(ParsedObject { json, members });
        }
        self.position = start;
        None
    }

    fn read_members(&mut self) -> Option<Vec<JsonMember<'a>>> {
        let mut members = Vec::with_capacity(8);
        if !self.eat(b'{') {
            return None;
        }
        while !self.eat(b'}') {
            let key = self.read_value()?.to_text()?;
            self.eat(b':');
            members.push((key, self.read_value()?));
            self.eat(b',');
        }
        Some(members)
    }

    /// Consumes the next value.
    pub fn read_value(&mut self) -> Option<JsonText<'a>> {
        self.peek()?;
        let end = find_value_end(self.text.as_bytes(), self.position)?;
        let value = self.text.get(self.position..end)?;
        self.position = end;
        Some(JsonText::new(value))
    }
}

/// Returns the end of the value that begins at `at`.
fn find_value_end(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => find_string_end(bytes, at + 1),
        b'{' | b'[' => find_nested_end(bytes, at),
        b',' | b':' | b'}' | b']' => None,
        _ => {
            let ends =
                |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n');
            let len = bytes[at..].iter().position(ends);
            Some(len.map_or(bytes.len(), |len| at + len))
        }
    }
}

/// Returns the end of the string whose opening quote is just before `at`.
pub(crate) fn find_string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += find_quote_or_backslash(bytes.get(at..)?)? + 1;
        if bytes[at - 1] == b'"' {
            return Some(at);
        }
        at += 1;
    }
}

/// Returns the index of the first quote or backslash. In source code, escapes are too close together for `memchr` to
/// pay off, so this examines eight bytes at a time as one integer.
pub(crate) fn find_quote_or_backslash(bytes: &[u8]) -> Option<usize> {
    const LOW_BITS: u64 = u64::MAX / 255;
    // The lowest set bit marks the first byte of `word` that equals `wanted` (Mycroft, 1987).
    let marks = |word: u64, wanted: u8| {
        let zero = word ^ (LOW_BITS * u64::from(wanted));
        zero.wrapping_sub(LOW_BITS) & !zero & (LOW_BITS << 7)
    };
    let (words, rest) = bytes.as_chunks();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = marks(word, b'"') | marks(word, b'\\');
        if found != 0 {
            return Some(index * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let in_rest = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'));
    in_rest.map(|at| bytes.len() - rest.len() + at)
}

/// Returns the end of the array or object that begins at `at`.
fn find_nested_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        match byte {
            b'"' => at = find_string_end(bytes, at)?,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return Some(at),
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_found_at_every_offset() {
        for len in 0..20 {
            for at in 0..len {
                let mut bytes = vec![0xA2; len];
                bytes[at] = if at % 2 == 0 { b'"' } else { b'\\' };
                assert_eq!(find_quote_or_backslash(&bytes), Some(at));
            }
            assert_eq!(find_quote_or_backslash(&vec![b'!'; len]), None);
        }
    }
}
