//! Finds the input of a call: under the key that its dialect has for it, or under another one that some servers write instead.

use crate::json::{Input, InvalidInput, JsonKind, JsonText, ParsedObject};
use crate::transcript::raw_call::parse_input;

/// Keys that inputs have in some dialect or template.
const INPUT_KEYS: [&str; 6] = [
    "arguments",
    "args",
    "input",
    "kwargs",
    "parameters",
    "params",
];

/// What keys of inputs have in them. What stands under any other such key may be an input, but nothing says that it is.
const INPUT_WORDS: [&str; 3] = ["arg", "input", "param"];

/// Returns what is at `key` of a call, the first of `places`. If that is missing or empty, the input is what stands under the only
/// other key of an input, there or in the objects around it.
///
/// # Errors
/// It isn't certain what the input is.
pub(crate) fn find_input<'a>(
    places: &[&ParsedObject<'a>],
    key: &str,
) -> Result<Option<JsonText<'a>>, InvalidInput> {
    let own = places.first().and_then(|call| call.get(key));
    if own.is_some_and(|own| !says_nothing(own)) {
        return Ok(own);
    }
    let members = places.iter().flat_map(|place| place.members());
    let others: Vec<_> = members
        .filter(|(name, value)| is_like_input(name) && !says_nothing(*value))
        .collect();
    match others[..] {
        [] => Ok(own),
        [(name, value)] if own.is_none_or(is_blank) && is_input(name, *value) => Ok(Some(*value)),
        [(name, _), ..] => Err(InvalidInput::OtherKey(name.to_string())),
    }
}

/// Parses what [`find_input`] finds.
///
/// # Errors
/// It isn't certain what the input is, or it isn't an object.
pub(crate) fn read_input(places: &[&ParsedObject], key: &str) -> Result<Input, InvalidInput> {
    find_input(places, key).and_then(parse_input)
}

fn is_like_input(name: &str) -> bool {
    let name = name.to_lowercase();
    INPUT_WORDS.iter().any(|word| name.contains(word))
}

fn is_input(name: &str, value: JsonText) -> bool {
    INPUT_KEYS.contains(&name) && matches!(value.kind(), JsonKind::Object | JsonKind::String)
}

fn is_blank(value: JsonText) -> bool {
    value.is_null() || value.get() == "\"\""
}

/// Returns whether a value has no arguments, even if it says so.
fn says_nothing(value: JsonText) -> bool {
    let letters: String = value.get().split_ascii_whitespace().collect();
    is_blank(value) || matches!(&*letters, "{}" | "\"{}\"")
}
