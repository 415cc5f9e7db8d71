//! A record as a line of the file: serializing, sealing and checking it.
//!
//! `crc` is the last member: the CRC-32 (IEEE 802.3) of all bytes of the line before `,"crc":`, as eight hexadecimal
//! digits. It detects torn and damaged lines; `seq` detects those that were removed, repeated or moved.

use std::borrow::Cow;
use std::io::{self, Write as _};

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::read::CorruptionKind;
use crate::records::kind::RecordKind;
use toolq_core::json::to_json_line;

/// Size of the seal that follows the sealed bytes: `,"crc":"`, eight digits and `"}`.
const SEAL_BYTES: usize = 18;

/// The members of a record, except its content and metadata.
pub(crate) struct RecordHeader<'a> {
    pub(crate) seq: u64,
    pub(crate) id: Uuid,
    pub(crate) parent: Option<Uuid>,
    /// Milliseconds since 1970.
    pub(crate) timestamp: u64,
    pub(crate) kind: &'a RecordKind,
}

#[derive(Serialize)]
struct SerializedRecord<'a, C, M> {
    seq: u64,
    id: HyphenatedUuid,
    #[serde(rename = "parentId")]
    parent_id: Option<HyphenatedUuid>,
    timestamp: u64,
    #[serde(rename = "type")]
    kind: &'a str,
    content: &'a C,
    metadata: &'a M,
}

struct HyphenatedUuid(Uuid);

impl Serialize for HyphenatedUuid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut buffer = Uuid::encode_buffer();
        serializer.serialize_str(self.0.hyphenated().encode_lower(&mut buffer))
    }
}

/// Replaces `line` with the serialized record and its line break.
///
/// # Errors
/// A value can't be represented in JSON.
pub(crate) fn write_sealed_line<C: Serialize, M: Serialize>(
    line: &mut Vec<u8>,
    head: &RecordHeader<'_>,
    content: &C,
    metadata: &M,
) -> io::Result<()> {
    line.clear();
    let record = SerializedRecord {
        seq: head.seq,
        id: HyphenatedUuid(head.id),
        parent_id: head.parent.map(HyphenatedUuid),
        timestamp: head.timestamp,
        kind: head.kind.name(),
        content,
        metadata,
    };
    serde_json::to_writer(&mut *line, &record)?;
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

/// Returns the SHA-256 in hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

/// A record that borrows from its line.
#[derive(Deserialize)]
pub(crate) struct ParsedRecord<'a> {
    pub(crate) seq: u64,
    pub(crate) id: Uuid,
    #[serde(rename = "parentId")]
    pub(crate) parent_id: Option<Uuid>,
    pub(crate) timestamp: u64,
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) content: &'a RawValue,
    #[serde(borrow)]
    pub(crate) metadata: &'a RawValue,
}

/// Checks the seal of a line without its line break, and parses the record.
pub(crate) fn parse_sealed_line(line: &[u8]) -> Result<ParsedRecord<'_>, CorruptionKind> {
    let text = std::str::from_utf8(line).map_err(|_| CorruptionKind::NotUtf8)?;
    let seal_start = line
        .len()
        .checked_sub(SEAL_BYTES)
        .ok_or(CorruptionKind::MissingChecksum)?;
    let (sealed, seal) = line.split_at(seal_start);
    let crc_digits = seal.strip_prefix(b",\"crc\":\"");
    let crc_digits = crc_digits.and_then(|digits| digits.strip_suffix(b"\"}"));
    let mut crc = [0; 8];
    HEXLOWER.encode_mut(&crc32fast::hash(sealed).to_be_bytes(), &mut crc);
    if crc_digits.ok_or(CorruptionKind::MissingChecksum)? != crc {
        return Err(CorruptionKind::WrongChecksum);
    }
    serde_json::from_str(text).map_err(|error| CorruptionKind::InvalidRecord(error.to_string()))
}

/// Returns whether a file whose first line is `line` may be a session log. A torn line may end within the beginning
/// that all logs have in common.
pub(crate) fn may_begin_log(line: &[u8], is_torn: bool) -> bool {
    const BEGINNING: &[u8] = b"{\"seq\":0,\"id\":\"";
    line.starts_with(BEGINNING) || is_torn && BEGINNING.starts_with(line)
}
