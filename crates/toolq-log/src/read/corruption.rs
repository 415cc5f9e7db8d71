//! What can be wrong with a log.

use toolq_core::text::escape;

/// Where a log is damaged, and how.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {kind}")]
pub struct Corruption {
    /// Number of the first damaged line, counted from 1.
    pub line: u64,
    /// Byte offset of the beginning of that line. All records before it are intact.
    pub offset: u64,
    /// What is wrong with that line.
    pub kind: CorruptionKind,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CorruptionKind {
    /// The file ends within a record: its writer was killed, or the disk was full. No call started because of it, since
    /// its write never completed.
    #[error("the record is torn: the file ends {bytes} bytes into it")]
    Torn { bytes: u64 },
    /// The first line isn't even the beginning of a log.
    #[error("this isn't a session log record")]
    NotALog,
    #[error("the line exceeds the 64 KiB record limit")]
    TooLong,
    #[error("the line isn't valid UTF-8")]
    NotUtf8,
    #[error("the line doesn't end in a checksum")]
    MissingChecksum,
    #[error("the line doesn't match its checksum")]
    WrongChecksum,
    #[error("the line isn't a valid record: {0}")]
    InvalidRecord(String),
    #[error("expected record {expected}, found {found}: lines are missing or were moved")]
    UnexpectedSeq { expected: u64, found: u64 },
    #[error("format {major}.{minor} is newer than this toolq supports")]
    NewerFormat { major: u32, minor: u32 },
    #[error("records of type {} must be understood, but this toolq doesn't know them", escape(.0))]
    MustUnderstand(String),
    /// The record is intact, but can't follow the ones before it.
    #[error("{0}")]
    SequenceViolation(&'static str),
    #[error("the metadata doesn't fit the record's type: {0}")]
    InvalidMetadata(String),
    #[error("the line can't be read: {0}")]
    Unreadable(String),
}

impl Corruption {
    /// Returns whether the only damage is an end that was never completely written. A torn end may be set aside.
    pub fn is_torn_end(&self) -> bool {
        matches!(self.kind, CorruptionKind::Torn { .. })
    }
}
