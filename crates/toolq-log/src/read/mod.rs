//! Reads records back, and verifies that they are unchanged.

mod reader;
mod sequence;

pub use crate::error::Corruption;
pub(crate) use crate::error::CorruptionKind;
pub use reader::RecordReader;
pub(crate) use reader::{LineExtent, MAX_TORN_BYTES};
pub use sequence::{SequenceChecker, verify_log};
