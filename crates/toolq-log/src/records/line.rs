//! One record as one line: composing, sealing and checking it.
//!
//! `crc` is the last member: the CRC-32 (IEEE 802.3) of all bytes of the line before `,"crc":`, as eight hexadecimal
//! digits; it finds torn and damaged lines. `prev` is the first sixteen hexadecimal digits of the SHA-256 of the line
//! before, without its line break, and zeros in the first line of a file; it finds lines that were removed or moved.
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::io::{self, Write as _};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use crate::read::Flaw;
use crate::records::kind::Kind;
use toolq_core::json::json_line;

/// What stands behind the sealed bytes: `,"crc":"` and `"}` around eight digits.
const SEAL: usize = 18;

/// The members of every record, but for its content and metadata.
pub(crate) struct Head<'a> {
    pub(crate) seq: u64,
    pub(crate) id: Uuid,
    pub(crate) parent: Option<Uuid>,
    /// Milliseconds since 1970.
    pub(crate) timestamp: u64,
    pub(crate) kind: &'a Kind,
    pub(crate) prev: &'a str,
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
pub(crate) fn seal<C: Serialize, M: Serialize>(
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
        kind: head.kind.name(),
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

/// The SHA-256 in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    push_hex(&mut text, bytes);
    text
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    let digits = bytes.iter().flat_map(|byte| digits(*byte));
    digits.for_each(|digit| text.push(char::from(digit)));
}

fn digits(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)])
}

/// What the next record of a log continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) seq: u64,
    pub(crate) prev: String,
}

impl Chain {
    /// That of an empty file.
    pub(crate) fn start() -> Self {
        Self {
            seq: 0,
            prev: "0".repeat(16),
        }
    }

    /// Continues behind `line`, without its break.
    pub(crate) fn push(&mut self, line: &[u8]) {
        self.seq += 1;
        self.prev.clear();
        push_hex(&mut self.prev, &Sha256::digest(line)[..8]);
    }

    /// Whether the record of these members follows.
    pub(crate) fn check(&self, seq: u64, prev: &str) -> Result<(), Flaw> {
        if seq != self.seq {
            return Err(Flaw::Sequence {
                expected: self.seq,
                found: seq,
            });
        }
        if prev != self.prev {
            return Err(Flaw::Chain);
        }
        Ok(())
    }
}

/// A record in its line.
#[derive(Deserialize)]
pub(crate) struct Read<'a> {
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
    #[serde(borrow)]
    pub(crate) prev: Cow<'a, str>,
}

/// The record of a line without its break, if its seal holds.
pub(crate) fn read(line: &[u8]) -> Result<Read<'_>, Flaw> {
    let text = std::str::from_utf8(line).map_err(|_| Flaw::NotUtf8)?;
    let seal = line.len().checked_sub(SEAL).ok_or(Flaw::NoSeal)?;
    let (sealed, seal) = line.split_at(seal);
    let sealed_digits = seal.strip_prefix(b",\"crc\":\"");
    let sealed_digits = sealed_digits.and_then(|digits| digits.strip_suffix(b"\"}"));
    let crc = crc32fast::hash(sealed).to_be_bytes().map(digits);
    if sealed_digits.ok_or(Flaw::NoSeal)? != crc.as_flattened() {
        return Err(Flaw::Checksum);
    }
    match as_written(&text[..sealed.len()]) {
        Some(read) => Ok(read),
        None => serde_json::from_str(text).map_err(|error| Flaw::NotARecord(error.to_string())),
    }
}

/// The record of a sealed line that has the form in which [`seal`] writes. None where it has another, or no JSON in
/// some place: what it is then, a parser says.
fn as_written(sealed: &str) -> Option<Read<'_>> {
    let rest = sealed.strip_prefix("{\"seq\":")?;
    let (seq, rest) = number(rest)?;
    let (id, rest) = uuid(rest.strip_prefix(",\"id\":")?)?;
    let rest = rest.strip_prefix(",\"parentId\":")?;
    let (parent_id, rest) = match rest.strip_prefix("null") {
        Some(rest) => (None, rest),
        None => uuid(rest).map(|(id, rest)| (Some(id), rest))?,
    };
    let (timestamp, rest) = number(rest.strip_prefix(",\"timestamp\":")?)?;
    let (kind, rest) = rest.strip_prefix(",\"type\":\"")?.split_once('"')?;
    let (content, rest) = value(rest.strip_prefix(",\"content\":")?)?;
    let (metadata, rest) = value(rest.strip_prefix(",\"metadata\":")?)?;
    let prev = rest.strip_prefix(",\"prev\":\"")?.strip_suffix('"')?;
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let plain = |text: &str| text.bytes().all(is_plain);
    (plain(kind) && plain(prev)).then_some(Read {
        seq,
        id,
        parent_id,
        timestamp,
        kind: Cow::Borrowed(kind),
        content,
        metadata,
        prev: Cow::Borrowed(prev),
    })
}

/// A number without sign, point or leading zeros, and what stands behind it.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit())?;
    let (digits, rest) = text.split_at(end);
    let is_json = digits == "0" || !digits.starts_with('0');
    let number = digits.parse().ok()?;
    is_json.then_some((number, rest))
}

/// A UUID in quotes, and what stands behind it.
fn uuid(text: &str) -> Option<(Uuid, &str)> {
    let (id, rest) = text
        .strip_prefix('"')?
        .split_at_checked(Hyphenated::LENGTH)?;
    Some((Uuid::try_parse(id).ok()?, rest.strip_prefix('"')?))
}

/// A JSON value, and what stands behind it.
fn value(text: &str) -> Option<(&RawValue, &str)> {
    if text.starts_with(|first: char| first.is_ascii_whitespace()) {
        return None;
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = <&RawValue>::deserialize(&mut reader).ok()?;
    Some((value, &text[value.get().len()..]))
}

/// Whether a file can have been begun by toolq that begins with this line, or with a torn one.
pub(crate) fn may_begin_log(line: &[u8], torn: bool) -> bool {
    const BEGINNING: &[u8] = b"{\"seq\":0,\"id\":\"";
    line.starts_with(BEGINNING) || torn && BEGINNING.starts_with(line)
}
