//! Where a document ends that arrives in pieces. No byte is looked at twice, and none is judged: what is no JSON ends
//! somewhere, too, and the parser says what is wrong with it.

use crate::json::quote_or_backslash;

/// How far the document that begins a window was looked through.
#[derive(Debug, Default)]
pub(crate) struct Extent {
    /// The first byte that was not looked at.
    at: usize,
    /// Arrays and objects that are open there.
    depth: usize,
    in_string: bool,
}

impl Extent {
    /// Looks on through `bytes`, the document as far as it is there; whether its end is.
    pub fn ends_in(&mut self, bytes: &[u8]) -> bool {
        while let Some(rest) = bytes.get(self.at..).filter(|rest| !rest.is_empty()) {
            if self.in_string {
                let Some(passed) = self.pass_string(rest) else {
                    return false;
                };
                self.at += passed;
            } else {
                self.at += 1;
                if self.pass(rest[0]) {
                    return true;
                }
            }
        }
        false
    }

    /// How much of `rest` belongs to a string surely; none where a backslash has nothing behind it yet.
    fn pass_string(&mut self, rest: &[u8]) -> Option<usize> {
        let Some(found) = quote_or_backslash(rest) else {
            return Some(rest.len());
        };
        if rest[found] == b'"' {
            self.in_string = false;
            return Some(found + 1);
        }
        (found + 1 < rest.len()).then_some(found + 2)
    }

    /// Passes a byte outside of strings; whether the document ends there.
    fn pass(&mut self, byte: u8) -> bool {
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b' ' | b'\t' | b'\r' | b'\n' => return false,
            _ => {}
        }
        self.depth == 0 && !self.in_string
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same end is found however the bytes arrive.
    #[test]
    fn ends_are_found_in_pieces() {
        for text in [r#" {"a\"}":[1,{"b":"]\\"}],"c":"ü"}"#, "[[],[{}]]", "}"] {
            let bytes = text.as_bytes();
            for cut in 0..bytes.len() {
                let mut extent = Extent::default();
                assert!(!extent.ends_in(&bytes[..cut]), "{cut} of {text}");
                assert!(extent.ends_in(bytes), "{cut} of {text}");
            }
        }
    }
}
