//! Where a record is in its log, so that it can be read again.

use crate::records::Record;

/// Where a line is in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineExtent {
    /// Byte offset of its beginning.
    pub(crate) offset: u64,
    /// Length in bytes, including its line break.
    pub(crate) len: u32,
    /// Its number, counted from 1. For messages only, so the numbers of later lines than this can count may all be the
    /// same.
    pub(crate) line: u32,
}

impl LineExtent {
    /// Returns where a record is. `end` is the byte offset of its end.
    pub(crate) fn from_record(record: &Record, end: u64) -> Self {
        Self {
            offset: record.offset,
            // No line is longer than 64 KiB.
            len: u32::try_from(end - record.offset).unwrap_or(u32::MAX),
            line: u32::try_from(record.line).unwrap_or(u32::MAX),
        }
    }
}
