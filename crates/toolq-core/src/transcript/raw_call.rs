//! A call as its dialect's reader finds it, before it has a place in a turn.

use crate::json::{Input, InvalidInput, ParsedObject};
use std::borrow::Cow;

/// The id, name, and input of one call.
pub(crate) struct RawCall {
    /// `None` if it's missing or not a string.
    pub id: Option<String>,
    /// `None` if it's missing or not a string.
    pub name: Option<String>,
    pub input: Result<Input, InvalidInput>,
}

impl RawCall {
    /// Creates a call. Its input is an error if it has no name.
    pub fn new(
        id: Option<Cow<str>>,
        name: Option<Cow<str>>,
        input: Result<Input, InvalidInput>,
    ) -> Self {
        let input = match name {
            Some(_) => input,
            None => Err(InvalidInput::MissingName),
        };
        Self {
            id: id.map(Cow::into_owned),
            name: name.map(Cow::into_owned),
            input,
        }
    }

    /// Rejects the call if `object` has a duplicate key. Readers disagree on which of the two counts, so another
    /// program would see a different call.
    pub(crate) fn reject_duplicate_keys(mut self, object: &ParsedObject) -> Self {
        if let Some(key) = object.duplicate_key() {
            self.input = Err(InvalidInput::duplicate_key(key));
        }
        self
    }
}
