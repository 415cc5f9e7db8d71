//! Rejects JSON that is valid but not allowed in inputs or in content blocks from tools: duplicate keys, too many
//! values, excessive nesting, lone surrogates, and numbers out of range. Takes one pass over text that is known to be
//! valid JSON.

use crate::json::cursor::JsonCursor;
use crate::json::input::{InvalidInput, MAX_INPUT_DEPTH, MAX_INPUT_VALUES};
use crate::json::pointer::escape_pointer_token;
use crate::json::value;
use crate::json::value::JsonText;

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
        has_unicode_escapes: text.contains("\\u"),
    };
    checker.check_value(0)
}

/// The state of one check.
struct StrictJsonChecker<'a> {
    cursor: JsonCursor<'a>,
    nodes: usize,
    /// Whether the text has `\u` escapes, which may form lone surrogates.
    has_unicode_escapes: bool,
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
        if self.has_unicode_escapes && string.to_text().is_none() {
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
