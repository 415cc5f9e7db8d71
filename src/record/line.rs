//! One record as one line: composing, sealing and checking it.
//!
//! `crc` is the last member: the CRC-32 (IEEE 802.3) of all bytes of the line before `,"crc":`, as eight hexadecimal
//! digits; it finds torn and damaged lines. `prev` is the first sixteen hexadecimal digits of the SHA-256 of the line
//! before, without its line break, and zeros in the first line of a file; it finds lines that were removed or moved.

use std::borrow::Cow;
use std::io::{self, Write as _};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::model::json_line;

/// What stands behind the sealed bytes: `,"crc":"` and `"}` around eight digits.
const SEAL: usize = 18;

/// The members of every record, but for its content and metadata.
pub(super) struct Head<'a> {
    pub(super) seq: u64,
    pub(super) id: Uuid,
    pub(super) parent: Option<Uuid>,
    /// Milliseconds since 1970.
    pub(super) timestamp: u64,
    pub(super) kind: &'static str,
    pub(super) prev: &'a str,
}

#[derive(Serialize)]
struct Record<'a, C, M> {
    seq: u64,
    id: Id,
    #[serde(rename = "parentId")]
    parent_id: Option<Id>,
    timestamp: u64,
    #[serde(rename = "type")]
    kind: &'a str,
    content: &'a C,
    metadata: &'a M,
    prev: &'a str,
}

struct Id(Uuid);

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut buffer = Uuid::encode_buffer();
        serializer.serialize_str(self.0.hyphenated().encode_lower(&mut buffer))
    }
}

/// Writes the record into `line`, in the place of what was there, with the line break behind it.
///
/// # Errors
/// Something has no form in JSON.
pub(super) fn seal<C: Serialize, M: Serialize>(
    line: &mut Vec<u8>,
    head: &Head<'_>,
    content: &C,
    metadata: &M,
) -> io::Result<()> {
    line.clear();
    let record = Record {
        seq: head.seq,
        id: Id(head.id),
        parent_id: head.parent.map(Id),
        timestamp: head.timestamp,
        kind: head.kind,
        content,
        metadata,
        prev: head.prev,
    };
    serde_json::to_writer(&mut *line, &record)?;
    keep_on_one_line(line);
    line.pop();
    let crc = crc32fast::hash(line);
    writeln!(line, ",\"crc\":\"{crc:08x}\"}}")
}

/// Texts may hold characters that end a line for some readers.
fn keep_on_one_line(line: &mut Vec<u8>) {
    if line.is_ascii() {
        return;
    }
    let text = String::from_utf8_lossy(line);
    if let Cow::Owned(safe) = json_line(&text) {
        *line = safe.into_bytes();
    }
}

/// `prev` of the record that follows `line`.
pub(super) fn digest(line: &[u8]) -> String {
    let mut hex = sha256(line.trim_ascii_end());
    hex.truncate(16);
    hex
}

/// The SHA-256 in hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = Sha256::digest(bytes).into_iter();
    let digits = digits.flat_map(|byte: u8| [byte >> 4, byte & 15]);
    digits
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

/// What is needed of a record to continue behind it.
#[derive(Deserialize)]
pub(super) struct Read<'a> {
    pub(super) seq: u64,
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) metadata: &'a RawValue,
}

/// The record of a line without its break; none where its seal is broken.
pub(super) fn read(line: &[u8]) -> Option<Read<'_>> {
    let (sealed, seal) = line.split_at_checked(line.len().checked_sub(SEAL)?)?;
    let digits = seal.strip_prefix(b",\"crc\":\"")?.strip_suffix(b"\"}")?;
    let crc = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    if crc32fast::hash(sealed) != crc {
        return None;
    }
    serde_json::from_slice(line).ok()
}
