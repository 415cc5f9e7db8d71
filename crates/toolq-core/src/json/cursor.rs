//! A walk over valid JSON, from value to value. What is no JSON ends it; nothing panics.

use crate::json::value::{Json, Member, Object};

/// A place in valid JSON.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next byte that is no white space.
    pub fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at)?, b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    /// Passes `byte` if it is next.
    pub fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Passes the next value if it is an object, whose members it opens on the way.
    pub fn object(&mut self) -> Option<Object<'a>> {
        self.peek();
        let begin = self.at;
        let members = self.members();
        let json = self.text.get(begin..self.at).map(Json::new);
        if let (Some(members), Some(json)) = (members, json) {
            return Some(Object { json, members });
        }
        self.at = begin;
        None
    }

    fn members(&mut self) -> Option<Vec<Member<'a>>> {
        let mut members = Vec::with_capacity(8);
        if !self.eat(b'{') {
            return None;
        }
        while !self.eat(b'}') {
            let key = self.value()?.text()?;
            self.eat(b':');
            members.push((key, self.value()?));
            self.eat(b',');
        }
        Some(members)
    }

    /// Passes the next value.
    pub fn value(&mut self) -> Option<Json<'a>> {
        self.peek()?;
        let end = value_end(self.text.as_bytes(), self.at)?;
        let value = self.text.get(self.at..end)?;
        self.at = end;
        Some(Json::new(value))
    }
}

/// Where the value that begins at `at` ends.
fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => string_end(bytes, at + 1),
        b'{' | b'[' => nested_end(bytes, at),
        b',' | b':' | b'}' | b']' => None,
        _ => {
            let ends =
                |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n');
            let len = bytes[at..].iter().position(ends);
            Some(len.map_or(bytes.len(), |len| at + len))
        }
    }
}

/// Where the string ends whose opening quote stands before `at`.
fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += quote_or_backslash(bytes.get(at..)?)? + 1;
        if bytes[at - 1] == b'"' {
            return Some(at);
        }
        at += 1;
    }
}

/// Where the first quote or backslash stands. Escapes stand close together in code, too close for `memchr` to get up to
/// speed, so eight bytes at a time are looked at as one number.
pub(crate) fn quote_or_backslash(bytes: &[u8]) -> Option<usize> {
    const EACH: u64 = u64::MAX / 255;
    // The lowest bit that is set marks the first byte of `word` that is `wanted` (Mycroft, 1987).
    let marks = |word: u64, wanted: u8| {
        let zero = word ^ (EACH * u64::from(wanted));
        zero.wrapping_sub(EACH) & !zero & (EACH << 7)
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

/// Where the array or object ends that begins at `at`.
fn nested_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        match byte {
            b'"' => at = string_end(bytes, at)?,
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
    fn quotes_are_found_wherever_they_stand() {
        for len in 0..20 {
            for at in 0..len {
                let mut bytes = vec![0xA2; len];
                bytes[at] = if at % 2 == 0 { b'"' } else { b'\\' };
                assert_eq!(quote_or_backslash(&bytes), Some(at));
            }
            assert_eq!(quote_or_backslash(&vec![b'!'; len]), None);
        }
    }
}
