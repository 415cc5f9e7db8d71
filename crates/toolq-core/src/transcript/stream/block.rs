//! A block of a message that is arriving: a call, or anything else.

use std::borrow::Cow;

use crate::json::{Input, InvalidInput, MAX_INPUT_BYTES};
use crate::transcript::build_call::call_with_id;
use crate::transcript::json_end_scanner::JsonEndScanner;
use crate::transcript::raw_call::RawCall;
use crate::types::Call;

/// A partial input is emitted again once it has grown by more than one part in this many. Each event repeats the whole
/// input so far, so this keeps the sum of all events a small multiple of the input.
const GROWTH_DIVISOR: usize = 16;

/// A block that is arriving.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// The index by which the API refers to it.
    pub index: Option<u64>,
    pub is_call: bool,
    /// Id of a call. `None` if it's missing or not a string.
    pub id: Option<String>,
    /// Name of a call. `None` if it's missing or not a string.
    pub name: Option<String>,
    /// The input in case no piece arrives.
    pub initial_input: Option<String>,
    /// An error that makes the call invalid, regardless of the input that arrives.
    pub input_error: Option<InvalidInput>,
    /// Its position among the calls of its message, if it's a call.
    pub position: usize,
    /// No more pieces may follow: if it's a call, it may already have been handed out.
    pub is_complete: bool,
    /// The JSON of its input so far.
    input: String,
    end_scanner: JsonEndScanner,
    /// The input has its end.
    has_end: bool,
    /// Length of the input when it was last emitted, in bytes.
    emitted_bytes: usize,
}

/// A call whose input has grown.
pub(crate) struct GrownInput {
    pub id: String,
    pub name: String,
    pub input_so_far: String,
}

impl Block {
    /// Creates a call without input.
    pub fn call(index: Option<u64>, id: Option<String>, name: Option<String>) -> Self {
        Self {
            index,
            is_call: true,
            id,
            name,
            ..Self::default()
        }
    }

    /// Creates a block that isn't a call.
    pub fn other(index: Option<u64>) -> Self {
        Self {
            index,
            ..Self::default()
        }
    }

    /// Returns whether it has a name and the end of its input.
    pub fn seems_complete(&self) -> bool {
        self.name.is_some() && self.has_end
    }

    /// Adds a piece of the input. Returns `false` if the call was already complete.
    pub fn append_input(&mut self, piece: &str) -> bool {
        if self.is_complete {
            return piece.trim().is_empty();
        }
        self.input.push_str(piece);
        self.has_end |= self.end_scanner.reaches_end(self.input.as_bytes());
        true
    }

    /// Replaces the input by its complete text.
    pub fn replace_input(&mut self, text: &str) {
        text.clone_into(&mut self.input);
    }

    /// Returns the input so far of a call, if it has grown by enough since the last time.
    /// Calls without an id or a name are skipped: there would be nothing to report them under.
    pub fn grown_input(&mut self) -> Option<GrownInput> {
        let has_grown = self.input.len() > self.emitted_bytes + self.emitted_bytes / GROWTH_DIVISOR;
        let (id, name) = (self.id.as_ref()?, self.name.as_ref()?);
        if !has_grown || self.input.len() > MAX_INPUT_BYTES {
            return None;
        }
        self.emitted_bytes = self.input.len();
        Some(GrownInput {
            id: id.clone(),
            name: name.clone(),
            input_so_far: self.input.clone(),
        })
    }

    /// Returns the text of its input. Pieces that are only whitespace don't count.
    fn input_text(&self) -> &str {
        match &self.initial_input {
            _ if !self.input.trim().is_empty() => &self.input,
            Some(initial_input) => initial_input,
            None => "{}",
        }
    }

    /// Returns the call that it would be if it had arrived in one piece.
    pub fn to_call(&self, turn: usize) -> Call {
        let text = |text: &Option<String>| text.clone().map(Cow::Owned);
        let input = match &self.input_error {
            Some(error) => Err(error.clone()),
            None => Input::parse(self.input_text()),
        };
        let raw = RawCall::new(text(&self.id), text(&self.name), input);
        call_with_id(turn, self.position, raw)
    }

    /// Drops the input of a call that was handed out.
    pub fn drop_input(&mut self) {
        self.input = String::new();
        self.initial_input = None;
    }
}
