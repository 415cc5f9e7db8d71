//! The input of a call, and why a text isn't one.

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::meaning_digest;
use crate::json::value::{self, JsonCursor, JsonKind, JsonText, escape_pointer_token};

/// Maximum size of one call's input, in bytes.
pub const MAX_INPUT_BYTES: usize = 8 << 20;
/// Maximum nesting depth of arrays and objects in an input.
pub const MAX_INPUT_DEPTH: usize = 64;
/// Maximum number of values in an input.
pub const MAX_INPUT_VALUES: usize = 100_000;

/// The input of a call: the text of one JSON object, exactly as received, so that numbers keep their digits and keys
/// their order.
///
/// No object in it has a duplicate key. Parsers disagree on which of two values counts (RFC 8259, section 4), so the
/// tool could see a different value than the one that was validated. Clones share the text.
#[derive(Debug, Clone)]
pub struct Input(Arc<RawValue>);

impl Serialize for Input {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(raw.get()).map_err(D::Error::custom)
    }
}

/// Why a text isn't a valid input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum InvalidInput {
    /// The input is missing or `null`.
    #[error("the input is missing; pass an object, or `{{}}` for no arguments")]
    Missing,
    /// The input is JSON, but not an object.
    #[error("the input is {0}; it must be an object")]
    NotAnObject(JsonKind),
    /// The input isn't valid JSON.
    #[error("the input is not valid JSON: {0}")]
    NotJson(String),
    /// An object has a duplicate key.
    #[error("the key {key:?} appears twice in one object")]
    DuplicateKey {
        /// JSON pointer to the object.
        pointer: String,
        /// The duplicate key.
        key: String,
    },
    /// The input exceeds one of the limits.
    #[error("the input {0}")]
    TooLarge(String),
    /// The call has no name, or its name isn't a string.
    #[error("the call has no name")]
    MissingName,
    /// The id of the call is neither a text nor a number, so no result can name the call.
    #[error("the id of the call is {0}; it must be a text")]
    UnreadableId(JsonKind),
    /// What may be the input stands under a key that isn't one of inputs, or under one of several.
    #[error("the input is missing, but what is under the key {0:?} may be it")]
    OtherKey(String),
    /// Only a part of the input is there.
    #[error("the input is incomplete")]
    Incomplete,
    /// It isn't a call of a kind that toolq runs.
    #[error("toolq doesn't run calls of the kind {0:?}")]
    UnknownKind(String),
    /// A session log says why the input wasn't valid, but doesn't have its text.
    #[error("{0}")]
    Recorded(String),
}

impl InvalidInput {
    /// The top-level object has this duplicate key.
    pub(crate) fn duplicate_key(key: &str) -> Self {
        Self::DuplicateKey {
            pointer: String::new(),
            key: key.to_owned(),
        }
    }
}

impl Input {
    /// Parses one JSON object that has no duplicate keys and stays within the limits.
    ///
    /// # Errors
    /// The first problem found.
    pub fn parse(text: &str) -> Result<Self, InvalidInput> {
        let text = text.trim_matches([' ', '\t', '\r', '\n']);
        check_size(text)?;
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            let cause = parse_error_cause(text, &error);
            InvalidInput::NotJson(format!("{cause} at line {line} column {column}"))
        })?;
        match JsonText::from(raw).kind() {
            JsonKind::Object => {}
            JsonKind::Null => return Err(InvalidInput::Missing),
            other => return Err(InvalidInput::NotAnObject(other)),
        }
        check_json(text)?;
        Ok(Self::from_checked(raw.to_owned()))
    }

    /// Creates the input `{KEY: TEXT}`.
    ///
    /// # Errors
    /// It exceeds a limit.
    pub(crate) fn of_text(key: &str, text: &str) -> Result<Self, InvalidInput> {
        Self::parse(&format!("{{{}:{}}}", Value::from(key), Value::from(text)))
    }

    /// Returns the input `{}`.
    pub fn empty() -> Self {
        Self::from_checked(RawValue::from_string("{}".to_owned()).unwrap_or_default())
    }

    fn from_checked(raw: Box<RawValue>) -> Self {
        Self(raw.into())
    }

    /// Returns the text exactly as received.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Returns the text as JSON.
    pub fn json(&self) -> JsonText<'_> {
        JsonText::from(&*self.0)
    }

    /// Works out the digest of what the input means, from its whole text: see [`meaning_digest`].
    pub fn meaning(&self) -> [u8; 32] {
        meaning_digest(self.json())
    }

    /// Returns the text as a raw JSON value.
    pub fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// Returns the text as a raw JSON value that shares its bytes.
    pub fn share(&self) -> Arc<RawValue> {
        Arc::clone(&self.0)
    }

    /// Parses the input into a tree. Numbers beyond 64 bits lose digits, so use it to validate, never to pass values
    /// on.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.text()).unwrap_or_default()
    }

    /// Returns the value at `path` with its digits intact, or `None` if a key is missing or its parent isn't an object.
    pub fn value_at(&self, path: &[String]) -> Option<JsonText<'_>> {
        path.iter()
            .try_fold(self.json(), |value, key| value.object()?.get(key))
    }
}

fn check_size(text: &str) -> Result<(), InvalidInput> {
    if text.len() <= MAX_INPUT_BYTES {
        return Ok(());
    }
    let message = format!("has {} bytes; the limit is {MAX_INPUT_BYTES}", text.len());
    Err(InvalidInput::TooLarge(message))
}

// Rejects JSON that is valid but not allowed in inputs or in content blocks from tools: duplicate keys, too many
// values, excessive nesting, lone surrogates, and numbers out of range. Takes one pass over text that is known to be
// valid JSON.

/// Maximum exponent of a number, in either direction.
const MAX_EXPONENT: i64 = 400;

/// Checks `text`, which must be valid JSON.
///
/// # Errors
/// The first problem found.
pub fn check_json(text: &str) -> Result<(), InvalidInput> {
    let mut checker = StrictJsonChecker {
        cursor: JsonCursor::new(text),
        nodes: 0,
        has_surrogates: text.contains("\\ud") || text.contains("\\uD"),
    };
    checker.check_value(0)
}

/// The state of one check.
struct StrictJsonChecker<'a> {
    cursor: JsonCursor<'a>,
    nodes: usize,
    /// Whether the text has escapes of surrogates, some of which may be alone.
    has_surrogates: bool,
}

impl<'a> StrictJsonChecker<'a> {
    /// Checks the next value, which is nested inside `depth` others.
    fn check_value(&mut self, depth: usize) -> Result<(), InvalidInput> {
        self.nodes += 1;
        if self.nodes > MAX_INPUT_VALUES {
            let message = format!("has more than {MAX_INPUT_VALUES} values");
            return Err(InvalidInput::TooLarge(message));
        }
        if depth > MAX_INPUT_DEPTH {
            let message = format!("is nested deeper than {MAX_INPUT_DEPTH} levels");
            return Err(InvalidInput::TooLarge(message));
        }
        match self.cursor.peek() {
            Some(b'{') => self.check_object(depth),
            Some(b'[') => self.check_array(depth),
            Some(b'"') => self.check_string().map(drop),
            Some(b't' | b'f' | b'n') => {
                self.cursor.read_value();
                Ok(())
            }
            _ => check_number(self.cursor.read_value()),
        }
    }

    fn check_array(&mut self, depth: usize) -> Result<(), InvalidInput> {
        self.cursor.eat(b'[');
        let mut index = 0_usize;
        while !self.cursor.eat(b']') {
            let item = self.check_value(depth + 1);
            item.map_err(|fault| fault.prefix_pointer(&index.to_string()))?;
            self.cursor.eat(b',');
            index += 1;
        }
        Ok(())
    }

    fn check_object(&mut self, depth: usize) -> Result<(), InvalidInput> {
        self.cursor.eat(b'{');
        let mut keys = Vec::new();
        while !self.cursor.eat(b'}') {
            let key = self.check_string()?.to_text().unwrap_or_default();
            self.cursor.eat(b':');
            self.check_value(depth + 1)
                .map_err(|fault| fault.prefix_pointer(&key))?;
            self.cursor.eat(b',');
            keys.push(key);
        }
        match value::find_duplicate(keys.iter().map(|key| &**key)) {
            None => Ok(()),
            Some(key) => Err(InvalidInput::DuplicateKey {
                pointer: String::new(),
                key: key.to_owned(),
            }),
        }
    }

    /// Checks the next string. Its escapes must form characters.
    fn check_string(&mut self) -> Result<JsonText<'a>, InvalidInput> {
        let string = self.cursor.read_value().unwrap_or(JsonText::new("\"\""));
        if self.has_surrogates && string.to_text().is_none() {
            let message = "a string contains a lone surrogate".to_owned();
            return Err(InvalidInput::NotJson(message));
        }
        Ok(string)
    }
}

/// Rejects numbers that no 64-bit float can hold: one parser would read infinity or zero, and another would refuse the
/// number or expand its exponent.
fn check_number(value: Option<JsonText>) -> Result<(), InvalidInput> {
    let digits = value.map_or("", JsonText::get);
    let is_large = digits.len() > 300 && digits.parse::<f64>().is_ok_and(f64::is_infinite);
    let Some((_, exponent)) = digits.split_once(['e', 'E']) else {
        return if is_large {
            Err(number_out_of_range())
        } else {
            Ok(())
        };
    };
    let is_in_range = exponent
        .parse::<i64>()
        .is_ok_and(|exponent| exponent.abs() <= MAX_EXPONENT);
    if !is_in_range || digits.parse::<f64>().is_ok_and(f64::is_infinite) {
        return Err(number_out_of_range());
    }
    Ok(())
}

fn number_out_of_range() -> InvalidInput {
    InvalidInput::TooLarge(format!(
        "has a number out of range; at most 1.8e308, with an exponent within ±{MAX_EXPONENT}"
    ))
}

impl InvalidInput {
    /// Adjusts the JSON pointer of an error for the enclosing value, which has the faulty value at `token`.
    fn prefix_pointer(mut self, token: &str) -> Self {
        if let Self::DuplicateKey { pointer, .. } = &mut self {
            pointer.insert_str(0, &format!("/{}", escape_pointer_token(token)));
        }
        self
    }
}

// Says why a text can't be read as JSON.

/// Says why `what`, such as `the input`, can't be read from `text`. A number beyond every float is valid JSON all the same, so it
/// isn't called anything else.
pub(crate) fn describe_parse_error(what: &str, text: &str, error: &serde_json::Error) -> String {
    match &*parse_error_cause(text, error) {
        "number out of range" => format!("{what} has a number out of range; at most 1.8e308"),
        cause => format!("{what} is not valid JSON: {cause}"),
    }
}

/// Says why `text` isn't JSON. `serde_json` knows a trailing comma only where it builds a value.
fn parse_error_cause(text: &str, error: &serde_json::Error) -> String {
    let at = parse_error_offset(text, error);
    let (before, after) = text.split_at_checked(at).unwrap_or_default();
    if before.trim_end().ends_with(',') && after.starts_with(['}', ']']) {
        return "trailing comma".to_owned();
    }
    let cause = error.to_string();
    cause
        .split(" at line ")
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Returns the offset in `text` at which the parser found an error.
pub(crate) fn parse_error_offset(text: &str, error: &serde_json::Error) -> usize {
    let lines = text.split_inclusive('\n');
    let before: usize = lines
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    before + error.column().saturating_sub(1)
}

// JSON on one line.

/// What some readers take for the end of a line.
const LINE_BREAKS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// Puts a JSON text on one line without changing its meaning. Digits and key order are preserved.
///
/// Text with line breaks loses the whitespace between its values; JSON strings can't contain raw line breaks. NEL,
/// U+2028, and U+2029, which some readers treat as line ends, can only occur inside strings and are replaced by their
/// escapes.
pub fn to_json_line(json: &str) -> Cow<'_, str> {
    if !LINE_BREAKS
        .iter()
        .any(|line_break| json.contains(*line_break))
    {
        return Cow::Borrowed(json);
    }
    let mut line = String::with_capacity(json.len());
    let (mut quoted, mut escaped) = (false, false);
    for c in json.chars() {
        match c {
            ' ' | '\t' | '\n' | '\r' if !quoted => {}
            '\u{85}' => line.push_str("\\u0085"),
            '\u{2028}' => line.push_str("\\u2028"),
            '\u{2029}' => line.push_str("\\u2029"),
            _ => line.push(c),
        }
        quoted ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
    }
    Cow::Owned(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input of more than 64 levels, 8 MiB or 100,000 values, a number that no 64-bit float holds, and a lone
    /// surrogate.
    #[test]
    fn invalid_inputs_are_rejected() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(65), "}".repeat(65));
        let bomb = "[".repeat(1_000_000);
        let wide = format!(r#"{{"a":[{}1]}}"#, "1,".repeat(MAX_INPUT_VALUES));
        let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_INPUT_BYTES));
        for text in [
            &deep,
            &bomb,
            &wide,
            &large,
            "",
            "null",
            "3",
            "{",
            r#"{"a":1e400}"#,
            r#"{"a":1e-401}"#,
            r#"{"a":0e99999999999999999999}"#,
            r#"{"a":"\ud800"}"#,
        ] {
            assert!(Input::parse(text).is_err(), "{text:.40}");
        }
        assert!(matches!(
            Input::parse(&deep),
            Err(InvalidInput::TooLarge(_))
        ));
        assert!(matches!(
            Input::parse(&wide),
            Err(InvalidInput::TooLarge(_))
        ));
    }

    /// Digits are passed on as written.
    #[test]
    fn numbers_keep_their_digits() {
        let text = r#"{"a":{"n":12345678901234567890123,"f":1.0,"z":-0,"e":1E2,"small":1e-400}}"#;
        let input = Input::parse(text).unwrap();
        let at = |path: &[&str]| {
            let path: Vec<String> = path.iter().map(|part| (*part).to_owned()).collect();
            input.value_at(&path).map(|raw| raw.get().to_owned())
        };
        assert_eq!(at(&["a", "n"]).as_deref(), Some("12345678901234567890123"));
        assert_eq!(at(&["a", "f"]).as_deref(), Some("1.0"));
        assert_eq!(at(&["a", "e"]).as_deref(), Some("1E2"));
        assert_eq!(at(&["a", "missing"]), None);
        assert_eq!(input.text(), text);
    }
}

#[cfg(test)]
mod line_tests {
    use super::*;

    /// No input can end the line that it is written on.
    #[test]
    fn a_json_line_has_no_break_and_the_same_value() {
        let json = "{\r\n  \"a b\": \"\\\\\\\" x\u{2028}y\u{2029}\u{85}\", \"n\": 1.0\n}";
        let line = to_json_line(json);
        assert_eq!(line, r#"{"a b":"\\\" x\u2028y\u2029\u0085","n":1.0}"#);
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(value(&line), value(json));
        for unchanged in ["{}", "\"\u{a9} \u{2020} \u{20ac}\""] {
            assert!(matches!(to_json_line(unchanged), Cow::Borrowed(_)));
        }
        for (broken, whole) in [("1\n", "1"), ("\r1", "1"), ("\"\u{85}\"", r#""\u0085""#)] {
            assert_eq!(to_json_line(broken), whole);
        }
    }
}
