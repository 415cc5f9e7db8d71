//! Finds the end of a JSON document that arrives in pieces, in one pass over its bytes. Nothing is validated.

use memchr::memchr2;

/// How far a document was scanned, and the state at that point.
#[derive(Debug, Default)]
pub(crate) struct JsonEndScanner {
    /// Number of bytes scanned.
    scanned_bytes: usize,
    /// Number of open arrays and objects.
    depth: usize,
    in_string: bool,
}

impl JsonEndScanner {
    /// Returns how far it has scanned: to the end of the document, once that was reached.
    pub fn scanned_bytes(&self) -> usize {
        self.scanned_bytes
    }

    /// Continues the scan through `bytes`, which is the document so far, and returns whether it has its end.
    pub fn reaches_end(&mut self, bytes: &[u8]) -> bool {
        while let Some(rest) = bytes
            .get(self.scanned_bytes..)
            .filter(|rest| !rest.is_empty())
        {
            if self.in_string {
                let Some(passed) = self.scan_string(rest) else {
                    return false;
                };
                self.scanned_bytes += passed;
            } else {
                self.scanned_bytes += 1;
                if self.scan_byte(rest[0]) {
                    return true;
                }
            }
        }
        false
    }

    /// Returns how many bytes of `rest` certainly belong to the string, or `None` if `rest` ends in a backslash whose
    /// next byte has yet to arrive.
    fn scan_string(&mut self, rest: &[u8]) -> Option<usize> {
        let Some(found) = memchr2(b'"', b'\\', rest) else {
            return Some(rest.len());
        };
        if rest[found] == b'"' {
            self.in_string = false;
            return Some(found + 1);
        }
        (found + 1 < rest.len()).then_some(found + 2)
    }

    /// Consumes a byte outside of strings and returns whether the document ends with it.
    fn scan_byte(&mut self, byte: u8) -> bool {
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

    #[test]
    fn the_end_is_found_however_bytes_arrive() {
        for text in [r#" {"a\"}":[1,{"b":"]\\"}],"c":"ü"}"#, "[[],[{}]]", "}"] {
            let bytes = text.as_bytes();
            for cut in 0..bytes.len() {
                let mut scanner = JsonEndScanner::default();
                assert!(!scanner.reaches_end(&bytes[..cut]), "{cut} of {text}");
                assert!(scanner.reaches_end(bytes), "{cut} of {text}");
            }
        }
    }
}
