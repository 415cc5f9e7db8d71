//! One JSON document of an input, and the offsets of its parts.

use crate::json::{JsonText, ParsedObject};
use crate::transcript::document_error::DocumentError;
use crate::transcript::input_error::OffsetError;

/// A document. Its outermost object is parsed once and shared by all readers.
pub(crate) struct InputDocument<'a> {
    pub json: JsonText<'a>,
    /// `None` if the document isn't an object.
    pub object: Option<ParsedObject<'a>>,
    pub origin: DocumentOrigin,
}

/// Where a document starts, to find the offsets of its parts in the input.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct DocumentOrigin {
    /// Address of its first byte in memory.
    address: usize,
    /// Offset of its first byte in the input.
    offset: u64,
}

impl DocumentOrigin {
    /// Creates the origin of a document whose `text` starts at byte `offset` of the input.
    pub fn new(text: &str, offset: u64) -> Self {
        let address = text.as_ptr().addr();
        Self { address, offset }
    }

    /// Returns the offset of a part of the document in the input.
    pub fn offset_of(self, part: JsonText) -> u64 {
        let distance = part.get().as_ptr().addr().saturating_sub(self.address);
        self.offset + distance as u64
    }

    /// Replaces the value that an error borrows from the document by its offset, so that the error can outlive the
    /// document.
    pub fn locate(self, error: DocumentError) -> OffsetError {
        OffsetError {
            hint: error.hint,
            ..OffsetError::at(self.offset_of(error.value), error.message)
        }
    }
}
