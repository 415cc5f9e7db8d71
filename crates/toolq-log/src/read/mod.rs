//! Reads records back, and verifies that they are unchanged.

mod reader;
mod sequence;

pub use reader::{Corruption, RecordReader};
pub(crate) use reader::{CorruptionKind, LineExtent, MAX_TORN_BYTES};
pub use sequence::{SequenceChecker, verify_log};
