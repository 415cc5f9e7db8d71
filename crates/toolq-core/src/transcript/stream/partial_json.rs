//! Completes JSON that is still arriving to the value known so far.

#[cfg(test)]
mod tests;

/// What the scanner expects next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanState {
    /// A value.
    Value,
    /// A key, or the end of the object.
    Key,
    /// The colon after a key.
    AfterKey,
    /// A comma, or the end of the array or object.
    AfterValue,
}

/// Completes `text`, a prefix of a JSON object, to the JSON of the object as far as it's known.
///
/// A string that isn't closed ends where the text does. Anything that isn't certain yet is left out: a key without a
/// value, and a number or literal that may continue. So the result is a prefix of the final object in every part: each
/// string is a prefix of the final string, each array of the final array.
///
/// Returns `None` if `text` isn't a prefix of an object, or is too short to tell.
pub fn complete_partial_json(text: &str) -> Option<String> {
    let mut scanner = PartialJsonScanner {
        text,
        position: text.len() - text.trim_start().len(),
        open_closers: Vec::new(),
        known_end: 0,
    };
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let begin = scanner.position;
    let string_end = scanner.scan()?;
    let mut value = text[begin..scanner.known_end.max(begin)].to_owned();
    value.push_str(string_end);
    value.extend(
        scanner
            .open_closers
            .iter()
            .rev()
            .map(|&open| char::from(open)),
    );
    // The scanner only follows brackets and strings; the parser validates the rest.
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&value).is_ok();
    is_json.then_some(value)
}

struct PartialJsonScanner<'a> {
    text: &'a str,
    position: usize,
    /// Closing brackets of the open arrays and objects.
    open_closers: Vec<u8>,
    /// End of the text that is certain. Open arrays and objects are closed after it.
    known_end: usize,
}

impl PartialJsonScanner<'_> {
    /// Scans to the end and returns what closes the string that the text ends in, if any; `None` if the text isn't a
    /// prefix of JSON.
    fn scan(&mut self) -> Option<&'static str> {
        let mut state = ScanState::Value;
        while let Some(&byte) = self.text.as_bytes().get(self.position) {
            state = match (state, byte) {
                (_, b' ' | b'\t' | b'\r' | b'\n') => {
                    self.position += 1;
                    continue;
                }
                (ScanState::Value, b'{') => self.open_nested(b'}', ScanState::Key),
                (ScanState::Value, b'[') => self.open_nested(b']', ScanState::Value),
                (ScanState::Value | ScanState::AfterValue, b']')
                | (ScanState::Key | ScanState::AfterValue, b'}') => self.close_nested(byte)?,
                (ScanState::Key, b'"') => match self.string_end() {
                    Ok(end) => {
                        self.position = end;
                        ScanState::AfterKey
                    }
                    Err(_) => return Some(""),
                },
                (ScanState::Value, b'"') => match self.string_end() {
                    Ok(end) => {
                        (self.position, self.known_end) = (end, end);
                        ScanState::AfterValue
                    }
                    Err(end) => {
                        self.known_end = end;
                        return Some("\"");
                    }
                },
                (ScanState::AfterKey, b':') => self.advance(ScanState::Value),
                (ScanState::AfterValue, b',') => match self.open_closers.last()? {
                    b'}' => self.advance(ScanState::Key),
                    _ => self.advance(ScanState::Value),
                },
                (ScanState::Value, _) => {
                    let rest = &self.text[self.position..];
                    let Some(end) = rest.find([',', ']', '}', ' ', '\t', '\r', '\n']) else {
                        // It may continue.
                        return Some("");
                    };
                    self.position += end;
                    self.known_end = self.position;
                    ScanState::AfterValue
                }
                _ => return None,
            };
            if self.open_closers.is_empty() {
                break;
            }
        }
        Some("")
    }

    fn advance(&mut self, next: ScanState) -> ScanState {
        self.position += 1;
        next
    }

    fn open_nested(&mut self, end: u8, next: ScanState) -> ScanState {
        self.open_closers.push(end);
        self.position += 1;
        self.known_end = self.position;
        next
    }

    fn close_nested(&mut self, end: u8) -> Option<ScanState> {
        if self.open_closers.pop()? != end {
            return None;
        }
        self.position += 1;
        self.known_end = self.position;
        Some(ScanState::AfterValue)
    }

    /// Returns the end of the string that starts here, after its closing quote. If it isn't closed, the error is the
    /// end of its last complete character.
    fn string_end(&self) -> Result<usize, usize> {
        let bytes = self.text.as_bytes();
        let mut at = self.position + 1;
        loop {
            match bytes.get(at) {
                None => return Err(at),
                Some(b'"') => return Ok(at + 1),
                Some(b'\\') => match escape_len(&bytes[at..]) {
                    Some(len) => at += len,
                    None => return Err(at),
                },
                Some(_) => at += 1,
            }
        }
    }
}

/// Returns the length of the escape at the start of `bytes`, or `None` if it's incomplete. A surrogate pair counts as
/// one escape.
fn escape_len(bytes: &[u8]) -> Option<usize> {
    match bytes.get(1)? {
        b'u' => {
            let digits = str::from_utf8(bytes.get(2..6)?).ok();
            let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
            match unit {
                Some(0xD800..0xDC00) => bytes.get(11).map(|_| 12),
                _ => Some(6),
            }
        }
        _ => Some(2),
    }
}
