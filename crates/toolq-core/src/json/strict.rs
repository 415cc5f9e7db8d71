//! What JSON allows and an input, or a block that a tool made, must not have: a key twice, too many values, too deep a nesting, half of a surrogate
//! pair, a number that nobody can hold. One pass over a text that is known to be JSON.

use crate::json::cursor::Cursor;
use crate::json::input::{InputFault, MAX_INPUT_DEPTH, MAX_INPUT_NODES};
use crate::json::value;
use crate::json::value::Json;

/// Checks `text`, which is JSON.
///
/// # Errors
/// The first fault found.
pub fn check_json(text: &str) -> Result<(), InputFault> {
    let mut walk = Walk {
        cursor: Cursor::new(text),
        nodes: 0,
        escapes: text.contains("\\u"),
    };
    walk.value(0)
}

/// How far it came.
struct Walk<'a> {
    cursor: Cursor<'a>,
    nodes: usize,
    /// Some string may hold a lone surrogate.
    escapes: bool,
}

impl<'a> Walk<'a> {
    /// Passes one value, which stands inside `depth` others.
    fn value(&mut self, depth: usize) -> Result<(), InputFault> {
        self.nodes += 1;
        if self.nodes > MAX_INPUT_NODES {
            let message = format!("has more than {MAX_INPUT_NODES} values");
            return Err(InputFault::TooLarge(message));
        }
        if depth > MAX_INPUT_DEPTH {
            let message = format!("is nested deeper than {MAX_INPUT_DEPTH} levels");
            return Err(InputFault::TooLarge(message));
        }
        match self.cursor.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(drop),
            _ => number(self.cursor.value()),
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), InputFault> {
        self.cursor.eat(b'[');
        let mut index = 0_usize;
        while !self.cursor.eat(b']') {
            let item = self.value(depth + 1);
            item.map_err(|fault| fault.inside(&index.to_string()))?;
            self.cursor.eat(b',');
            index += 1;
        }
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<(), InputFault> {
        self.cursor.eat(b'{');
        let mut keys = Vec::new();
        while !self.cursor.eat(b'}') {
            let key = self.string()?.text().unwrap_or_default();
            self.cursor.eat(b':');
            self.value(depth + 1).map_err(|fault| fault.inside(&key))?;
            self.cursor.eat(b',');
            keys.push(key);
        }
        match value::twice(keys.iter().map(|key| &**key).collect()) {
            None => Ok(()),
            Some(key) => Err(InputFault::DuplicateKey {
                pointer: String::new(),
                key: key.to_owned(),
            }),
        }
    }

    /// A string, whose escapes must be characters.
    fn string(&mut self) -> Result<Json<'a>, InputFault> {
        let string = self.cursor.value().unwrap_or(Json::new("\"\""));
        if self.escapes && string.text().is_none() {
            let message = "a string holds half of a surrogate pair".to_owned();
            return Err(InputFault::NotJson(message));
        }
        Ok(string)
    }
}

/// A number that no reader can hold would be read as infinite by one and refused by another.
fn number(value: Option<Json>) -> Result<(), InputFault> {
    let digits = value.map_or("", Json::get);
    let may_be_large = digits.len() > 300 || digits.contains(['e', 'E']);
    if may_be_large && digits.parse::<f64>().is_ok_and(f64::is_infinite) {
        return Err(InputFault::NotJson("a number is out of range".to_owned()));
    }
    Ok(())
}

impl InputFault {
    /// The fault of a value, seen from the value around it, where it stands at `part`.
    fn inside(mut self, part: &str) -> Self {
        if let Self::DuplicateKey { pointer, .. } = &mut self {
            let part = part.replace('~', "~0").replace('/', "~1");
            pointer.insert_str(0, &format!("/{part}"));
        }
        self
    }
}
