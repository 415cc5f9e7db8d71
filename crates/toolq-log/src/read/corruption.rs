use toolq_core::text::escape;

/// Where a log is damaged, and how.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Damage {
    /// Counted from 1: the first line that is not what was written.
    pub line: u64,
    /// Where that line begins, in bytes. All records before it are whole.
    pub offset: u64,
    /// What is wrong with it.
    pub what: Flaw,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// The end of the file is the beginning of a record: its writer was killed, or the disk was full. No call started
    /// because of it, since its write never came to an end.
    #[error("the record is torn: the file ends after {bytes} bytes of it")]
    Torn { bytes: u64 },
    /// It is no beginning of a log either.
    #[error("this is no record of a session log")]
    NotALog,
    #[error("it has more than 64 KiB, which no record has")]
    TooLong,
    #[error("it is no UTF-8")]
    NotUtf8,
    #[error("it does not end in a checksum")]
    NoSeal,
    #[error("its checksum is wrong: bytes of it were changed")]
    Checksum,
    #[error("it is no record: {0}")]
    NotARecord(String),
    #[error("it is record {found}, and {expected} was to follow: lines are missing or were moved")]
    Sequence { expected: u64, found: u64 },
    #[error("it does not follow the line before: lines were changed, removed or moved")]
    Chain,
    #[error("the format {major}.{minor} is newer than this toolq knows")]
    Newer { major: u32, minor: u32 },
    #[error("records of type {} must be understood, and this toolq doesn't know them", escape(.0))]
    MustUnderstand(String),
    /// Each line is whole, but they can't follow one another.
    #[error("{0}")]
    Disorder(&'static str),
    #[error("its metadata is not that of its type: {0}")]
    Metadata(String),
    #[error("it can't be read: {0}")]
    Unreadable(String),
}

impl Damage {
    /// Whether all that is wrong is an end that was never written whole. What was torn may be set aside.
    pub fn is_torn(&self) -> bool {
        matches!(self.what, Flaw::Torn { .. })
    }
}
