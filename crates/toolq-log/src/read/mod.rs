//! Reads records back, and verifies that they are unchanged.

mod corruption;
mod line_extent;
mod reader;
mod referenced_files;
mod sequence;
mod verify;

pub use corruption::Corruption;
pub(crate) use corruption::CorruptionKind;
pub(crate) use line_extent::LineExtent;
pub(crate) use reader::MAX_TORN_BYTES;
pub use reader::RecordReader;
pub use sequence::SequenceChecker;
pub use verify::verify_log;
