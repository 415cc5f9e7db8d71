//! A record as it is read from a log.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::FORMAT_VERSION;
use crate::read::{Corruption, CorruptionKind};
use crate::records::blob::RecordContent;
use crate::records::kind::RecordKind;
use crate::records::line;
use crate::records::session::FormatVersion;

/// A record, as it was written. It borrows from the line it was parsed from, unless [`Record::into_owned`] detached it.
#[derive(Debug, Clone)]
pub struct Record<'l> {
    /// Line number, counted from 1.
    pub line: u64,
    /// Byte offset of the beginning of its line.
    pub offset: u64,
    /// Byte offset of the end of its line, including the line break.
    pub end_offset: u64,
    /// Sequence number in the file, counted from 0.
    pub seq: u64,
    /// Id of the record.
    pub id: Uuid,
    /// Id of the record that it belongs to.
    pub parent: Option<Uuid>,
    /// When it was written, in milliseconds since 1970. Clocks can go backwards; only `seq` gives the order.
    pub timestamp: u64,
    /// Type of the record.
    pub kind: RecordKind,
    /// `null` if its type has no content.
    pub content: RecordContent<'l>,
    /// JSON whose form depends on the type.
    pub raw_metadata: Cow<'l, RawValue>,
}

impl<'l> Record<'l> {
    pub(crate) fn from_parsed(
        parsed: &line::ParsedRecord<'l>,
        line: u64,
        byte_range: Range<u64>,
    ) -> Result<Self, CorruptionKind> {
        Ok(Self {
            line,
            offset: byte_range.start,
            end_offset: byte_range.end,
            seq: parsed.seq,
            id: parsed.id,
            parent: parsed.parent_id,
            timestamp: parsed.timestamp,
            kind: RecordKind::from_name(&parsed.kind),
            content: RecordContent::from_raw(parsed.content)?,
            raw_metadata: Cow::Borrowed(parsed.metadata),
        })
    }

    /// Copies the record out of the line that it borrows from.
    #[must_use]
    pub fn into_owned(self) -> Record<'static> {
        Record {
            content: self.content.into_owned(),
            raw_metadata: Cow::Owned(self.raw_metadata.into_owned()),
            ..self
        }
    }

    /// Parses the metadata as `M`, the type of its records in [`super`].
    ///
    /// # Errors
    /// The metadata has a different form. Since the seal of the record is intact, toolq didn't write it.
    pub fn parse_metadata<'a, M: Deserialize<'a>>(&'a self) -> Result<M, Corruption> {
        serde_json::from_str(self.raw_metadata.get()).map_err(|error| Corruption {
            line: self.line,
            offset: self.offset,
            kind: CorruptionKind::InvalidMetadata(error.to_string()),
        })
    }
}

/// Parses a line that must have an intact seal and be record `seq`. Also returns the result of
/// [`check_compatibility`].
pub(crate) fn parse_next_record(
    bytes: &[u8],
    line: u64,
    byte_range: Range<u64>,
    seq: u64,
) -> Result<(Record<'_>, Option<FormatVersion>), CorruptionKind> {
    let parsed = line::parse_sealed_line(bytes)?;
    if parsed.seq != seq {
        return Err(CorruptionKind::UnexpectedSeq {
            expected: seq,
            found: parsed.seq,
        });
    }
    let record = Record::from_parsed(&parsed, line, byte_range)?;
    let newer_format = check_compatibility(&record)?;
    Ok((record, newer_format))
}

/// The only part of a `session` that every format has.
#[derive(Deserialize)]
struct SessionFormat {
    format: FormatVersion,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReaderRequirement {
    must_understand: bool,
}

/// Rejects a session of another major version, an unknown type that must be understood, and a first record that isn't a
/// session. Returns the format version of a session that has a newer minor version.
fn check_compatibility(record: &Record) -> Result<Option<FormatVersion>, CorruptionKind> {
    let metadata = record.raw_metadata.get();
    match &record.kind {
        RecordKind::Session => {
            let session = serde_json::from_str(metadata);
            let SessionFormat { format } =
                session.map_err(|error| CorruptionKind::InvalidMetadata(error.to_string()))?;
            let FormatVersion { major, minor } = format;
            if major != FORMAT_VERSION.0 {
                return Err(CorruptionKind::NewerFormat { major, minor });
            }
            Ok((minor > FORMAT_VERSION.1).then_some(format))
        }
        RecordKind::Other(name) => {
            let requirement: ReaderRequirement = serde_json::from_str(metadata).unwrap_or_default();
            if requirement.must_understand {
                return Err(CorruptionKind::MustUnderstand(name.to_string()));
            }
            Ok(None)
        }
        _ if record.seq == 0 => Err(CorruptionKind::NotALog),
        _ => Ok(None),
    }
}
