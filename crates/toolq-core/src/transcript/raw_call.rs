use crate::json::{Input, InputFault, Object};
use std::borrow::Cow;

/// What one call asks.
pub(crate) struct Asked {
    /// None where it is missing or no string.
    pub id: Option<String>,
    /// None where it is missing or no string.
    pub name: Option<String>,
    pub input: Result<Input, InputFault>,
}

impl Asked {
    pub fn new(
        id: Option<Cow<str>>,
        name: Option<Cow<str>>,
        input: Result<Input, InputFault>,
    ) -> Self {
        let input = match name {
            Some(_) => input,
            None => Err(InputFault::NoName),
        };
        Self {
            id: id.map(Cow::into_owned),
            name: name.map(Cow::into_owned),
            input,
        }
    }

    /// The same call, refused where a key of `around` stands twice: elsewhere it would be read as another call.
    pub(crate) fn unless_twice(mut self, around: &Object) -> Self {
        if let Some(key) = around.twice() {
            self.input = Err(InputFault::twice(key));
        }
        self
    }
}
