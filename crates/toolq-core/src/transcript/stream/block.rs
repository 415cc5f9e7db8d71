//! A block of a message that is arriving: a call, or anything else.

use std::borrow::Cow;

use crate::json::{Input, InvalidInput, ParsedObject};
use crate::transcript::call_id::CallId;
use crate::transcript::raw_call::{RawCall, parse_input_text};
use crate::transcript::stream::call_input::CallInput;
use crate::transcript::stream::message_record::BlockRecord;
use crate::types::{Call, CallKind};

/// What a block is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// A call that gets a result.
    Call(CallKind),
    /// Something else that has an input, such as a call that the API runs.
    Input,
    /// Something that has no input.
    #[default]
    Other,
}

/// A block that is arriving.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub kind: BlockKind,
    /// The index by which the API refers to it.
    pub index: Option<u64>,
    /// The name by which the API refers to it.
    pub key: Option<String>,
    /// Id of a call.
    pub id: CallId<'static>,
    /// Name of a call. `None` if it's missing or not a string.
    pub name: Option<String>,
    pub input: CallInput,
    /// What makes the call invalid, regardless of the input that arrives.
    pub fault: Option<InvalidInput>,
    /// Its position among the calls of its message, or that of the next call if it's none.
    pub position: usize,
    /// It has neither an id nor a name yet. Without them, what arrived is no call but pieces of another one.
    pub may_be_piece: bool,
    /// Its input came before its id and its name.
    pub was_named_late: bool,
    /// Its end has come: no more pieces may follow.
    pub is_complete: bool,
    /// Number of the first block of its group: blocks of which each began while another one was open. A piece of one may be in
    /// the input of another.
    pub group: usize,
    /// What goes back to the API, if that is kept.
    pub record: Option<Box<BlockRecord>>,
}

impl Block {
    /// Creates a block without anything but its kind and index.
    pub fn new(kind: BlockKind, index: Option<u64>) -> Self {
        Self {
            kind,
            index,
            input: CallInput::new(kind == BlockKind::Call(CallKind::Custom), None),
            ..Self::default()
        }
    }

    /// Sets the id and the name. Empty ones count as missing.
    #[must_use]
    pub fn called(self, id: CallId, name: Option<Cow<str>>) -> Self {
        Self {
            id: id.into_owned(),
            name: name.map(Cow::into_owned),
            ..self
        }
    }

    pub fn is_call(&self) -> bool {
        matches!(self.kind, BlockKind::Call(_))
    }

    /// Returns the call, as far as it has arrived.
    pub fn to_call(&self, turn: usize) -> Call {
        let (id, name) = (self.id.clone(), self.name.clone().map(Cow::Owned));
        let call = match (&self.fault, self.kind) {
            (Some(fault), BlockKind::Call(CallKind::Custom)) => {
                RawCall::custom(id, name, Err(fault.clone()))
            }
            (None, BlockKind::Call(CallKind::Custom)) => {
                RawCall::custom(id, name, Ok(self.input.text()))
            }
            (Some(fault), _) => RawCall::new(id, name, Err(fault.clone())),
            (None, _) => RawCall::new(id, name, self.parse_input()),
        };
        call.into_call(turn, self.position)
    }

    /// Parses the input. None is the same as an empty object.
    pub fn parse_input(&self) -> Result<Input, InvalidInput> {
        parse_input_text(self.input.text())
    }

    /// Keeps what goes back to the API. `start` is the JSON that the block begins with.
    pub fn keep_record(&mut self, start: &ParsedObject) {
        self.record = Some(Box::new(BlockRecord::new(start)));
    }
}
