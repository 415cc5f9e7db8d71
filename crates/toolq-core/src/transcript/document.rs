//! One JSON document of an input, and where its parts stand.

use crate::json::{Json, Object};
use crate::transcript::document_error::Complaint;
use crate::transcript::error::Fault;

/// A document, opened once for all who look at it.
pub(crate) struct Document<'a> {
    pub json: Json<'a>,
    /// None where it is something else.
    pub object: Option<Object<'a>>,
    pub origin: Origin,
}

/// Where a document begins.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Origin {
    /// In memory.
    address: usize,
    /// In the input, in bytes.
    offset: u64,
}

impl Origin {
    /// Of a document whose text begins at `offset` of the input.
    pub fn of(text: &str, offset: u64) -> Self {
        let address = text.as_ptr().addr();
        Self { address, offset }
    }

    /// Where a part of the document begins in the input.
    pub fn offset_of(self, part: Json) -> u64 {
        let distance = part.get().as_ptr().addr().saturating_sub(self.address);
        self.offset + distance as u64
    }

    /// The complaint about a part of the document, for when the document is gone.
    pub fn fault(self, complaint: Complaint) -> Fault {
        Fault {
            hint: complaint.hint,
            ..Fault::at(self.offset_of(complaint.at), complaint.message)
        }
    }
}
