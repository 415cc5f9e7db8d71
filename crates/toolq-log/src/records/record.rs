//! A record as it is read from a log.

use std::borrow::Cow;
use std::io::{self, Write as _};
use std::ops::Range;

use data_encoding::HEXLOWER;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_with::{DeserializeFromStr, SerializeDisplay};
use strum::{AsRefStr, Display, EnumIter, EnumString, VariantNames};
use uuid::Uuid;

use crate::FORMAT_VERSION;
use crate::error::{Corruption, CorruptionKind};
use crate::records::blob::{RecordContent, sha256_hex};
use redact::Mask;
use toolq_core::json::to_json_line;

/// A record, as it was written. It borrows from the line it was parsed from, unless [`Record::into_owned`] detached it.
#[derive(Debug, Clone, Deserialize)]
pub struct Record<'l> {
    /// Line number, counted from 1.
    #[serde(skip)]
    pub line: u64,
    /// Byte offset of the beginning of its line.
    #[serde(skip)]
    pub offset: u64,
    /// Byte offset of the end of its line, including the line break.
    #[serde(skip)]
    pub end_offset: u64,
    /// Sequence number in the file, counted from 0.
    pub seq: u64,
    /// Id of the record.
    pub id: Uuid,
    /// Id of the record that it belongs to.
    #[serde(rename = "parentId")]
    pub parent: Option<Uuid>,
    /// When it was written, in milliseconds since 1970. Clocks can go backwards; only `seq` gives the order.
    pub timestamp: u64,
    /// Type of the record.
    #[serde(rename = "type")]
    pub kind: RecordKind,
    /// `null` if its type has no content.
    pub content: RecordContent<'l>,
    /// JSON whose form depends on the type.
    #[serde(rename = "metadata", borrow, deserialize_with = "borrow_json")]
    pub raw_metadata: Cow<'l, RawValue>,
}

fn borrow_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'de, RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Cow::Borrowed)
}

impl Record<'_> {
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
    let record = parse_sealed_line(bytes, line, byte_range)?;
    if record.seq != seq {
        return Err(CorruptionKind::UnexpectedSeq {
            expected: seq,
            found: record.seq,
        });
    }
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

// A record as a line of the file: serializing, sealing and checking it.
//
// `crc` is the last member: the CRC-32 (IEEE 802.3) of all bytes of the line before `,"crc":`, as eight hexadecimal
// digits. It detects torn and damaged lines; `seq` detects those that were removed, repeated or moved.

/// Size of the seal that follows the sealed bytes: `,"crc":"`, eight digits and `"}`.
const SEAL_BYTES: usize = 18;

/// A record to be written.
#[derive(Debug, Serialize)]
pub(crate) struct NewRecord<C, M> {
    /// Its number in the file, which it gets where it is appended.
    pub(crate) seq: u64,
    pub(crate) id: Uuid,
    #[serde(rename = "parentId")]
    pub(crate) parent: Option<Uuid>,
    /// Milliseconds since 1970.
    pub(crate) timestamp: u64,
    #[serde(rename = "type")]
    pub(crate) kind: RecordKind,
    pub(crate) content: C,
    pub(crate) metadata: M,
}

/// Replaces `line` with the serialized record and its line break.
///
/// # Errors
/// A value can't be represented in JSON.
pub(crate) fn write_sealed_line<C: Serialize, M: Serialize>(
    line: &mut Vec<u8>,
    record: &NewRecord<C, M>,
) -> io::Result<()> {
    line.clear();
    serde_json::to_writer(&mut *line, record)?;
    escape_line_breaks(line);
    line.pop();
    let crc = crc32fast::hash(line);
    writeln!(line, ",\"crc\":\"{crc:08x}\"}}")
}

/// Escapes characters that some readers treat as line breaks.
fn escape_line_breaks(line: &mut Vec<u8>) {
    if line.is_ascii() {
        return;
    }
    let text = String::from_utf8_lossy(line);
    if let Cow::Owned(safe) = to_json_line(&text) {
        *line = safe.into_bytes();
    }
}

/// Checks the seal of a line without its line break, and parses the record.
pub(crate) fn parse_sealed_line(
    bytes: &[u8],
    line: u64,
    byte_range: Range<u64>,
) -> Result<Record<'_>, CorruptionKind> {
    let text = std::str::from_utf8(bytes).map_err(|_| CorruptionKind::NotUtf8)?;
    let seal_start = bytes
        .len()
        .checked_sub(SEAL_BYTES)
        .ok_or(CorruptionKind::MissingChecksum)?;
    let (sealed, seal) = bytes.split_at(seal_start);
    let crc_digits = seal.strip_prefix(b",\"crc\":\"");
    let crc_digits = crc_digits.and_then(|digits| digits.strip_suffix(b"\"}"));
    let mut crc = [0; 8];
    HEXLOWER.encode_mut(&crc32fast::hash(sealed).to_be_bytes(), &mut crc);
    if crc_digits.ok_or(CorruptionKind::MissingChecksum)? != crc {
        return Err(CorruptionKind::WrongChecksum);
    }
    let record: Record<'_> = serde_json::from_str(text)
        .map_err(|error| CorruptionKind::InvalidRecord(error.to_string()))?;
    Ok(Record {
        line,
        offset: byte_range.start,
        end_offset: byte_range.end,
        ..record
    })
}

/// Returns whether a file whose first line is `line` may be a session log. A torn line may end within the beginning
/// that all logs have in common.
pub(crate) fn may_begin_log(line: &[u8], is_torn: bool) -> bool {
    const BEGINNING: &[u8] = b"{\"seq\":0,\"id\":\"";
    line.starts_with(BEGINNING) || is_torn && BEGINNING.starts_with(line)
}

// The types of records.

/// The type of a record. A log may contain types that a newer toolq added.
#[derive(AsRefStr, Display, EnumIter, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
#[derive(Debug, Clone, PartialEq, Eq, Hash, SerializeDisplay, DeserializeFromStr)]
pub enum RecordKind {
    /// A run begins.
    Session,
    /// A turn begins.
    Turn,
    /// A model responded to an agent.
    ModelResponse,
    /// A call was requested.
    ToolCall,
    /// A call was approved or denied.
    Approval,
    /// An attempt at a call is about to start.
    ToolStart,
    /// A call has its result.
    ToolResult,
    /// A call was answered without running.
    ToolSkipped,
    /// A call was started, and whether it had its effect is unknown.
    ToolInDoubt,
    /// A tool's probe is about to check whether a call that was started did its work.
    ProbeStart,
    /// The probe ended.
    ProbeEnd,
    /// A tool's `describe` program is about to run.
    DescribeStart,
    /// The `describe` program ended.
    DescribeEnd,
    /// The tools of a server that tools.lock doesn't have are about to be requested.
    ListStart,
    /// The request for the tools ended.
    ListEnd,
    /// A server is ready for calls, or has ended before it was.
    ServerStart,
    /// A server has ended.
    ServerEnd,
    /// The tools file was read again.
    ToolsChange,
    /// A user stated what happened to a call in doubt.
    Resolve,
    /// The torn end of the file was set aside.
    Recovered,
    /// The run ended.
    SessionEnd,
    /// A type that this toolq doesn't know.
    #[strum(default, transparent)]
    Other(Box<str>),
}

impl RecordKind {
    /// Returns the name used in the file.
    pub fn name(&self) -> &str {
        self.as_ref()
    }

    /// Whether the last run is unfinished after a record of this type, given whether it was before. `recovered` and
    /// `resolve` records may follow the end of a run and don't belong to any.
    pub fn leaves_run_open(&self, was_open: bool) -> bool {
        match self {
            Self::SessionEnd => false,
            Self::Recovered | Self::Resolve => was_open,
            _ => true,
        }
    }

    /// Whether a record of this type ends a call.
    pub fn ends_call(&self) -> bool {
        matches!(
            self,
            Self::ToolResult | Self::ToolSkipped | Self::ToolInDoubt
        )
    }
}

/// Returns the form in which metadata holds a text that toolq didn't choose, such as an id, a tool name or an error. Its
/// secrets are masked. Of a text longer than 512 bytes, only the beginning is kept, with the length and digest of the
/// whole text so that it can still be distinguished from others.
pub(crate) fn recorded_text<'a>(text: &'a str, mask: &Mask) -> Cow<'a, str> {
    let whole = mask.apply(text);
    if whole.len() <= MAX_TEXT_BYTES {
        return whole;
    }
    let kept = &whole[..whole.floor_char_boundary(TRUNCATED_TEXT_BYTES)];
    let (bytes, digest) = (whole.len(), sha256_hex(whole.as_bytes()));
    Cow::Owned(format!("{kept}… ({bytes} bytes, sha256 {digest})"))
}

/// The format version of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say it")]
pub struct FormatVersion {
    pub major: u32,
    pub minor: u32,
}

/// Longest text that metadata holds whole, in bytes. Metadata is never stored in a file, so it has to be small.
pub(crate) const MAX_TEXT_BYTES: usize = 512;

/// How much of a longer text is kept, in bytes.
pub(crate) const TRUNCATED_TEXT_BYTES: usize = 400;

/// A record on its way to the keeper.
pub(crate) type DetachedRecord = NewRecord<Box<RawValue>, Box<RawValue>>;

impl<C: Serialize, M: Serialize> NewRecord<&C, &M> {
    pub(crate) fn detach(self) -> io::Result<DetachedRecord> {
        Ok(NewRecord {
            seq: self.seq,
            id: self.id,
            parent: self.parent,
            timestamp: self.timestamp,
            kind: self.kind,
            content: to_raw_value(self.content)?,
            metadata: to_raw_value(self.metadata)?,
        })
    }
}
