//! What has arrived of a call's input.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::de::IgnoredAny;

use crate::json::{InvalidInput, JsonKind, JsonText, MAX_INPUT_BYTES, meaning_digest};
use crate::transcript::json_end_scanner::JsonEndScanner;

/// A partial input is reported again once it has grown by more than one part in this many. Each report repeats the whole
/// input so far, so this keeps the sum of all reports a small multiple of the input.
const GROWTH_DIVISOR: usize = 16;

/// How much of an input is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Nothing but white space.
    Nothing,
    /// A part of it.
    Part,
    /// All of it.
    Whole,
    /// More than one input.
    TooMuch,
}

/// An input that arrives in pieces, as a whole, or both.
#[derive(Debug, Default)]
pub(crate) struct CallInput {
    /// It may be any text, not only JSON.
    is_text: bool,
    /// The pieces so far.
    pieces: String,
    /// The first half of a character whose other half begins the next piece: a surrogate, escaped.
    half: String,
    end_scanner: JsonEndScanner,
    /// The pieces have the end of a JSON value.
    has_end: bool,
    /// The input that the call began with, which counts if nothing follows.
    initial: Option<String>,
    /// The whole input as its last event has it.
    last: Option<String>,
    /// Length of the pieces when they were last reported, in bytes.
    reported_bytes: usize,
}

impl CallInput {
    /// Creates an input that the call began with, if it did.
    pub fn new(is_text: bool, initial: Option<JsonText>) -> Self {
        let text = initial.and_then(|initial| match initial.kind() {
            JsonKind::String => initial.to_text(),
            _ => Some(initial.get().into()),
        });
        let is_placeholder = |text: &str| {
            let letters = text.split_ascii_whitespace().collect::<String>();
            matches!(&*letters, "" | "{}" | "null")
        };
        Self {
            is_text,
            initial: text
                .filter(|text| !is_placeholder(text))
                .map(Cow::into_owned),
            ..Self::default()
        }
    }

    /// Takes another beginning of the same call. Returns `false` if it has another input.
    #[must_use]
    pub fn begins_again(&mut self, other: Self) -> bool {
        match (&self.initial, other.initial) {
            (_, None) => true,
            (Some(known), Some(other)) => is_same(known, &other),
            (None, other) => {
                self.initial = other;
                true
            }
        }
    }

    /// Adds a piece, which is a string. Pieces may end in the middle of a character.
    ///
    /// # Errors
    /// A half of a character has no other half.
    pub fn add_piece(&mut self, piece: JsonText) -> Result<(), InvalidInput> {
        let lone_surrogate = || InvalidInput::NotJson("a lone surrogate".to_owned());
        let inner = piece.get().trim_start_matches('"');
        let inner = inner.strip_suffix('"').unwrap_or(inner);
        let joined = std::mem::take(&mut self.half) + inner;
        let (whole, half) = joined.split_at(joined.len() - trailing_half(&joined));
        half.clone_into(&mut self.half);
        let quoted = format!("\"{whole}\"");
        let text = JsonText::new(&quoted)
            .to_text()
            .ok_or_else(lone_surrogate)?;
        self.pieces.push_str(&text);
        self.has_end = self.has_end || self.end_scanner.reaches_end(self.pieces.as_bytes());
        Ok(())
    }

    /// Adds a piece that is JSON of its own.
    pub fn add_json(&mut self, json: &str) {
        self.pieces.push_str(json);
        self.has_end = self.has_end || self.end_scanner.reaches_end(self.pieces.as_bytes());
    }

    /// Sets the whole input, or nothing if the text is empty and there is one. Returns `false` if it was another one before.
    #[must_use]
    pub fn set_last(&mut self, text: &str) -> bool {
        let arrival = self.arrival();
        if text.trim().is_empty() && arrival != Arrival::Nothing {
            return true;
        }
        let fits = match arrival {
            Arrival::Whole => is_same(self.text(), text),
            _ => !self.contradicts_itself(),
        };
        let is_begun_with = self.initial.as_ref().is_none_or(|initial| {
            let is_whole = self.is_text || serde_json::from_str::<IgnoredAny>(initial).is_ok();
            !is_whole || is_same(initial, text)
        });
        self.last.get_or_insert_with(|| text.to_owned());
        fits && is_begun_with
    }

    /// Returns whether this is the whole input that is there already.
    pub fn is_already(&self, text: &str) -> bool {
        self.arrival() == Arrival::Whole && is_same(self.text(), text)
    }

    /// Returns how much is there.
    pub fn arrival(&self) -> Arrival {
        let pieces = self.pieces.trim();
        if self.last.is_some() {
            Arrival::Whole
        } else if !self.half.is_empty() {
            Arrival::Part
        } else if pieces.is_empty() {
            match &self.initial {
                Some(_) => Arrival::Whole,
                None => Arrival::Nothing,
            }
        } else if self.is_text || !pieces.starts_with(['{', '[', '"']) {
            // Anything but an object is invalid however long it is.
            Arrival::Whole
        } else if !self.has_end {
            Arrival::Part
        } else if self.contradicts_itself() {
            Arrival::TooMuch
        } else if self.pieces.as_bytes()[self.end_scanner.scanned_bytes()..]
            .trim_ascii()
            .is_empty()
        {
            Arrival::Whole
        } else {
            Arrival::TooMuch
        }
    }

    /// Returns whether what came in pieces, if that is all of it, isn't what the call began with.
    pub fn contradicts_itself(&self) -> bool {
        let is_other = |initial: &String| !is_same(initial, &self.pieces);
        let is_whole = self.has_end || self.is_text && !self.pieces.is_empty();
        is_whole && self.initial.as_ref().is_some_and(is_other)
    }

    /// Returns whether one of the last events of the call had the whole input.
    pub fn is_given_whole(&self) -> bool {
        self.last.is_some()
    }

    /// Returns whether the input is text, or valid JSON.
    pub fn is_valid(&self) -> bool {
        self.is_text || serde_json::from_str::<IgnoredAny>(self.text()).is_ok()
    }

    /// Returns the text of the input: the last whole one, or else the pieces, or else what the call began with.
    pub fn text(&self) -> &str {
        match (&self.last, &self.initial) {
            (Some(last), _) => last,
            (None, _) if !self.pieces.trim().is_empty() => &self.pieces,
            (None, Some(initial)) => initial,
            (None, None) => "",
        }
    }

    /// Returns the pieces so far, if they have grown by enough since the last time.
    pub fn take_growth(&mut self) -> Option<String> {
        let reported = self.reported_bytes;
        let has_grown = self.pieces.len() > reported + reported / GROWTH_DIVISOR;
        if !has_grown || self.pieces.len() > MAX_INPUT_BYTES || self.is_text {
            return None;
        }
        self.reported_bytes = self.pieces.len();
        Some(self.pieces.clone())
    }
}

/// Returns whether two inputs are the same, however they are written.
fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.trim(), other.trim());
    let is_json = |text| serde_json::from_str::<IgnoredAny>(text).is_ok();
    let meaning = |text| meaning_digest(JsonText::new(text));
    one == other || is_json(one) && is_json(other) && meaning(one) == meaning(other)
}

/// Returns the length of the first half of a surrogate pair that an escaped text ends in.
fn trailing_half(text: &str) -> usize {
    const ESCAPE_BYTES: usize = 6;
    let Some(at) = text.len().checked_sub(ESCAPE_BYTES) else {
        return 0;
    };
    let Some((before, digits)) = text.get(at..).and_then(|end| {
        let digits = end.strip_prefix("\\u")?;
        Some((&text[..at], digits))
    }) else {
        return 0;
    };
    let is_high = matches!(u16::from_str_radix(digits, 16), Ok(0xD800..0xDC00));
    // A backslash before it would make it the text of an escape.
    let backslashes = before.len() - before.trim_end_matches('\\').len();
    if is_high && backslashes % 2 == 0 {
        ESCAPE_BYTES
    } else {
        0
    }
}

// Completes JSON that is still arriving to the value known so far.

/// Completes `text`, a prefix of a JSON object, to the JSON of the object as far as it's known.
///
/// A string that isn't closed ends where the text does. Anything that isn't certain yet is left out: a key without a
/// value, and a number or literal that may continue. So the result is a prefix of the final object in every part: each
/// string is a prefix of the final string, each array of the final array.
///
/// Returns `None` if `text` can't be completed to an object.
pub fn complete_partial_json(text: &str) -> Option<String> {
    let text = text.trim_start();
    let bytes = text.as_bytes();
    if !text.starts_with('{') {
        return None;
    }
    // What closes the open arrays and objects, after the end of what is certain.
    let (mut closers, mut known_end) = (Vec::new(), 0);
    let mut open_string = "";
    let (mut at, mut last_sign) = (0, b' ');
    while let Some(&byte) = bytes.get(at) {
        let is_key = closers.last() == Some(&'}') && last_sign != b':';
        at += 1;
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => continue,
            b',' | b':' => {}
            b'{' | b'[' => {
                closers.push(if byte == b'{' { '}' } else { ']' });
                known_end = at;
            }
            b'}' | b']' => {
                if closers.pop()? != char::from(byte) {
                    return None;
                }
                known_end = at;
                if closers.is_empty() {
                    break;
                }
            }
            b'"' => match string_end(bytes, at) {
                Ok(end) if is_key => at = end,
                Ok(end) => (at, known_end) = (end, end),
                Err(_) if is_key => break,
                Err(end) => {
                    (open_string, known_end) = ("\"", end);
                    break;
                }
            },
            _ if is_key => return None,
            _ => {
                let rest = &text[at - 1..];
                let Some(len) = rest.find([',', ']', '}', ' ', '\t', '\r', '\n']) else {
                    // It may continue.
                    break;
                };
                at += len - 1;
                known_end = at;
            }
        }
        last_sign = byte;
    }
    let closers = closers.iter().rev().collect::<String>();
    let value = [&text[..known_end], open_string, &closers].concat();
    // The loop only follows brackets and strings; the parser validates the rest.
    let is_json = serde_json::from_str::<IgnoredAny>(&value).is_ok();
    is_json.then_some(value)
}

/// Returns the end of the string whose text starts at `at`, after its closing quote. If it isn't closed, the error is the end of
/// its last complete character.
fn string_end(bytes: &[u8], mut at: usize) -> Result<usize, usize> {
    loop {
        match bytes.get(at) {
            None => return Err(at),
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at += escape_len(&bytes[at..]).ok_or(at)?,
            Some(_) => at += 1,
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

#[cfg(test)]
mod completeness_tests {
    use super::*;

    fn of_pieces(pieces: &[&str]) -> Result<CallInput, InvalidInput> {
        let mut input = CallInput::default();
        for piece in pieces {
            input.add_piece(JsonText::new(&format!("\"{piece}\"")))?;
        }
        Ok(input)
    }

    #[test]
    fn halves_of_a_character_are_joined() {
        for pieces in [
            vec![r#"{\"a\":\"\ud83d"#, r#"\ude00\"}"#],
            vec![r#"{\"a\":\"\ud83d"#, "", r#"\ude00\"}"#],
            vec![r#"{\"a\":\"\ud83d\ude00\"}"#],
        ] {
            let input = of_pieces(&pieces).unwrap();
            assert_eq!(
                (input.text(), input.arrival()),
                ("{\"a\":\"😀\"}", Arrival::Whole)
            );
        }
        assert!(of_pieces(&[r#"{\"a\":\"\ud83d"#, "x\\\"}"]).is_err());
        assert_eq!(
            of_pieces(&[r#"{\"a\":\"\ud83d"#]).unwrap().arrival(),
            Arrival::Part
        );
        // An escaped backslash, and four digits that look like a half.
        assert_eq!(of_pieces(&[r"\\ud83d", "x"]).unwrap().text(), r"\ud83dx");
    }

    #[test]
    fn what_is_missing_or_too_much_is_known() {
        let arrival = |pieces: &[&str]| of_pieces(pieces).unwrap().arrival();
        assert_eq!(arrival(&["", " "]), Arrival::Nothing);
        assert_eq!(arrival(&["{", " "]), Arrival::Part);
        assert_eq!(arrival(&["{", "}", " "]), Arrival::Whole);
        assert_eq!(arrival(&["{", "}", " {", "}"]), Arrival::TooMuch);
        assert_eq!(arrival(&["nu", "ll"]), Arrival::Whole);
        let mut input = CallInput::new(false, Some(JsonText::new("{ }")));
        assert_eq!(input.arrival(), Arrival::Nothing);
        assert!(input.set_last("{\"a\": 1}") && input.set_last("{\"a\":1}"));
        assert!(!input.set_last("{\"a\":2}"));
        assert_eq!(
            CallInput::new(false, Some(JsonText::new("{\"a\":1}"))).arrival(),
            Arrival::Whole
        );
    }
}
