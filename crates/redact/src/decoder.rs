//! Decodes a text byte by byte, and keeps track of where each decoded byte comes from.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Longest escape, in bytes. A surrogate pair (`\ud83d\ude00`) whose halves have sixteen backslashes each takes 42.
const MAX_PENDING_BYTES: usize = 48;

/// A decoded byte, and the byte range of the text that it comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecodedByte {
    pub(crate) byte: u8,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Decodes in stages, each of which reads the output of the one before: JSON escapes, escapes of JSON in that JSON, any
/// number of further backslashes, HTML entities, and finally percent-encoding. The first two stages are exact, because
/// in JSON within JSON any character may be escaped, even a backslash (`\u005c`). HTML entities come before
/// percent-encoding because HTML may write any character of `%41` as an entity.
#[derive(Debug)]
pub(crate) struct Decoder {
    stages: [DecoderStage; Self::STAGE_COUNT],
}

impl Decoder {
    /// Number of stages.
    const STAGE_COUNT: usize = 5;
    /// The stage that decodes HTML entities.
    pub(crate) const HTML_STAGE: usize = 3;
    /// The stage that undoes percent-encoding.
    pub(crate) const PERCENT_STAGE: usize = 4;

    pub(crate) fn new() -> Self {
        Self {
            stages: [
                DecoderStage::new(b"\\", decode_escape),
                DecoderStage::new(b"\\", decode_escape),
                DecoderStage::new(b"\\", decode_nested_escape),
                DecoderStage::new(b"&", decode_entity),
                DecoderStage::new(b"%", decode_percent),
            ],
        }
    }

    /// Reads the next byte of the text, and emits the decoded bytes that are certain.
    pub(crate) fn push(&mut self, byte: DecodedByte, emit: &mut dyn FnMut(DecodedByte)) {
        push_through(&mut self.stages, byte, emit);
    }

    /// Emits the rest: no more bytes follow.
    pub(crate) fn finish(&mut self, emit: &mut dyn FnMut(DecodedByte)) {
        let mut stages = self.stages.as_mut_slice();
        while let Some((stage, inner)) = stages.split_first_mut() {
            stage.decode_pending(true, &mut |byte| push_through(inner, byte, emit));
            stages = inner;
        }
    }

    /// Returns the offset in the text of the first byte that can't be decoded yet.
    pub(crate) fn pending_start(&self) -> Option<usize> {
        self.stages
            .iter()
            .rev()
            .find_map(DecoderStage::pending_start)
    }
}

fn push_through(
    mut stages: &mut [DecoderStage],
    byte: DecodedByte,
    emit: &mut dyn FnMut(DecodedByte),
) {
    while let Some((stage, inner)) = stages.split_first_mut() {
        if stage.concerns(byte.byte) {
            return stage.push(byte, &mut |decoded| push_through(inner, decoded, emit));
        }
        stages = inner;
    }
    emit(byte);
}

/// Decodes `text` with the given stages only.
pub(crate) fn decode_with_stages(text: &str, stages: impl IntoIterator<Item = usize>) -> Vec<u8> {
    let mut decoder = Decoder::new();
    let mut is_used = [false; Decoder::STAGE_COUNT];
    for index in stages {
        is_used[index] = true;
    }
    for (stage, is_used) in decoder.stages.iter_mut().zip(is_used) {
        if !is_used {
            stage.lead_bytes = b"";
        }
    }
    let mut decoded = Vec::new();
    let mut emit = |byte: DecodedByte| decoded.push(byte.byte);
    // Where a byte comes from doesn't matter here.
    let (start, end) = (0, 0);
    for byte in text.bytes() {
        decoder.push(DecodedByte { byte, start, end }, &mut emit);
    }
    decoder.finish(&mut emit);
    decoded
}

/// One stage of a decoder.
#[derive(Debug)]
struct DecoderStage {
    /// Every escape starts with one of these.
    lead_bytes: &'static [u8],
    decode: fn(&[u8], bool) -> DecodeStep,
    /// Bytes that can't be decoded yet.
    bytes: [u8; MAX_PENDING_BYTES],
    /// Where in the text each of `bytes` starts and ends.
    spans: [(usize, usize); MAX_PENDING_BYTES],
    len: usize,
}

impl DecoderStage {
    fn new(lead_bytes: &'static [u8], decode: fn(&[u8], bool) -> DecodeStep) -> Self {
        Self {
            lead_bytes,
            decode,
            bytes: [0; MAX_PENDING_BYTES],
            spans: [(0, 0); MAX_PENDING_BYTES],
            len: 0,
        }
    }

    fn pending_start(&self) -> Option<usize> {
        self.spans[..self.len].first().map(|(start, _)| *start)
    }

    /// Returns whether the stage has to read `byte`, which otherwise means itself.
    fn concerns(&self, byte: u8) -> bool {
        self.len > 0 || self.lead_bytes.contains(&byte)
    }

    /// Reads a byte that concerns the stage.
    fn push(&mut self, byte: DecodedByte, emit: &mut dyn FnMut(DecodedByte)) {
        self.bytes[self.len] = byte.byte;
        self.spans[self.len] = (byte.start, byte.end);
        self.len += 1;
        self.decode_pending(self.len == MAX_PENDING_BYTES, emit);
    }

    /// Emits what can be decoded; `at_end` means that no more bytes follow.
    fn decode_pending(&mut self, at_end: bool, emit: &mut dyn FnMut(DecodedByte)) {
        let mut done = 0;
        while done < self.len {
            let bytes = &self.bytes[done..self.len];
            let (used, decoded, len) = match (self.decode)(bytes, at_end) {
                _ if !self.lead_bytes.contains(&bytes[0]) => (1, [bytes[0]; MAX_DECODED_BYTES], 1),
                DecodeStep::NeedMore => break,
                DecodeStep::Decoded(used, decoded, len) => (used, decoded, len),
            };
            let ((start, _), (_, end)) = (self.spans[done], self.spans[done + used - 1]);
            for (byte, start) in decoded[..len].iter().zip(start..) {
                emit(DecodedByte {
                    byte: *byte,
                    start,
                    end,
                });
            }
            done += used;
        }
        self.bytes.copy_within(done..self.len, 0);
        self.spans.copy_within(done..self.len, 0);
        self.len -= done;
    }
}

// Decodes escapes: backslash sequences, `%2F`, `&amp;`. Each function sees the bytes received so far, which may be too
// few to decide.

/// Runs of this many backslashes or more aren't escapes. Each level of JSON in JSON doubles them.
const MAX_BACKSLASHES: usize = 16;
/// Length of the longest character reference, `&#x0010ffff;`.
const MAX_REFERENCE_BYTES: usize = 12;
/// Length of the longest text that one name of HTML stands for.
const MAX_DECODED_BYTES: usize = 6;

/// What each name of HTML stands for, without the signs around it. A line has the name and its characters, from
/// <https://html.spec.whatwg.org/entities.json>.
static HTML_NAMES: LazyLock<BTreeMap<&[u8], String>> = LazyLock::new(|| {
    let lines = include_str!("html_names.txt").lines();
    let names = lines.filter_map(|line| line.split_once(' '));
    names
        .map(|(name, codes)| {
            let codes = codes.split(' ').map(|code| u32::from_str_radix(code, 16));
            let chars = codes.map(|code| char_or_replacement(code.unwrap_or_default()));
            (name.as_bytes(), chars.collect())
        })
        .collect()
});

/// What the first bytes of a text decode to.
#[derive(Debug)]
enum DecodeStep {
    /// Too few bytes to decide.
    NeedMore,
    /// The first `.0` bytes decode to the first `.2` bytes of `.1`.
    Decoded(usize, [u8; MAX_DECODED_BYTES], usize),
}

impl DecodeStep {
    fn from_byte(used: usize, byte: u8) -> Self {
        Self::from_bytes(used, &[byte])
    }

    fn from_char(used: usize, c: char) -> Self {
        Self::from_bytes(used, c.encode_utf8(&mut [0; 4]).as_bytes())
    }

    fn from_bytes(used: usize, decoded: &[u8]) -> Self {
        let mut bytes = [0; MAX_DECODED_BYTES];
        bytes[..decoded.len()].copy_from_slice(decoded);
        Self::Decoded(used, bytes, decoded.len())
    }
}

/// Decodes a backslash and what follows it, as in JSON and most languages. `at_end` means that no more bytes follow.
fn decode_escape(bytes: &[u8], at_end: bool) -> DecodeStep {
    match bytes {
        [_] if !at_end => DecodeStep::NeedMore,
        [_, b'\\', ..] => DecodeStep::from_byte(2, b'\\'),
        _ => decode_letter(bytes, 1, at_end).unwrap_or(DecodeStep::from_byte(1, b'\\')),
    }
}

/// Decodes any number of backslashes and what follows them. Their number only depends on how often a text was escaped,
/// so one means the same as eight, and any number that escapes nothing becomes one. Secrets are decoded in the same way
/// before they are looked for.
fn decode_nested_escape(bytes: &[u8], at_end: bool) -> DecodeStep {
    let backslashes = count_backslashes(bytes, MAX_BACKSLASHES);
    if backslashes == MAX_BACKSLASHES {
        return DecodeStep::from_byte(backslashes, b'\\');
    }
    if backslashes == bytes.len() && !at_end {
        return DecodeStep::NeedMore;
    }
    decode_letter(bytes, backslashes, at_end).unwrap_or(DecodeStep::from_byte(backslashes, b'\\'))
}

/// Decodes an escape of `backslashes` backslashes and a letter. Returns `None` if there is no such escape.
fn decode_letter(bytes: &[u8], backslashes: usize, at_end: bool) -> Option<DecodeStep> {
    let (c, digits) = bytes.get(backslashes..)?.split_first()?;
    let used = backslashes + 1;
    Some(match c {
        b'n' => DecodeStep::from_byte(used, b'\n'),
        b't' => DecodeStep::from_byte(used, b'\t'),
        b'r' => DecodeStep::from_byte(used, b'\r'),
        b'b' => DecodeStep::from_byte(used, 8),
        b'f' => DecodeStep::from_byte(used, 12),
        // JSON escapes quotes and slashes; a shell, Markdown or a regular expression any sign.
        b' ' => DecodeStep::from_byte(used, *c),
        _ if c.is_ascii_punctuation() && *c != b'\\' => DecodeStep::from_byte(used, *c),
        b'u' if digits.starts_with(b"{") => decode_braced_code(bytes, used + 1, at_end)?,
        b'u' => match parse_hex(digits, 4) {
            Some(unit @ 0xd800..0xdc00) => {
                decode_surrogate_pair(bytes, backslashes, used + 4, unit, at_end)
            }
            Some(unit) => DecodeStep::from_char(used + 4, char_or_replacement(unit)),
            None if may_become_hex(digits, 4) && !at_end => DecodeStep::NeedMore,
            None => return None,
        },
        b'x' => match parse_hex(digits, 2) {
            Some(byte) => DecodeStep::from_byte(used + 2, u8::try_from(byte).unwrap_or_default()),
            None if may_become_hex(digits, 2) && !at_end => DecodeStep::NeedMore,
            None => return None,
        },
        _ => return None,
    })
}

/// Decodes an escape of Rust and JavaScript, `\u{e9}`, whose digits start at `at`.
fn decode_braced_code(bytes: &[u8], at: usize, at_end: bool) -> Option<DecodeStep> {
    let digits = bytes[at..]
        .iter()
        .take_while(|byte| byte.is_ascii_hexdigit());
    let count = digits.take(6).count();
    match (bytes.get(at + count), parse_hex(&bytes[at..], count)) {
        (Some(b'}'), Some(code)) if count > 0 => Some(DecodeStep::from_char(
            at + count + 1,
            char_or_replacement(code),
        )),
        (None, _) if !at_end => Some(DecodeStep::NeedMore),
        _ => None,
    }
}

/// Decodes a surrogate pair, `\ud83d\ude00`. Its low half is expected at `low_start`, after as many backslashes as the
/// high half has.
fn decode_surrogate_pair(
    bytes: &[u8],
    backslashes: usize,
    low_start: usize,
    high: u32,
    at_end: bool,
) -> DecodeStep {
    let rest = &bytes[low_start..];
    let low_backslashes = count_backslashes(rest, backslashes);
    let digits = rest.get(low_backslashes + 1..).unwrap_or_default();
    let is_escape = low_backslashes == backslashes && rest.get(low_backslashes) == Some(&b'u');
    if let Some(low @ 0xdc00..0xe000) = parse_hex(digits, 4).filter(|_| is_escape) {
        let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        return DecodeStep::from_char(low_start + low_backslashes + 5, char_or_replacement(code));
    }
    let may_follow = low_backslashes == rest.len() || is_escape && may_become_hex(digits, 4);
    if may_follow && !at_end {
        return DecodeStep::NeedMore;
    }
    DecodeStep::from_char(low_start, char::REPLACEMENT_CHARACTER)
}

/// Decodes a byte of a URL: `%2f`.
fn decode_percent(bytes: &[u8], at_end: bool) -> DecodeStep {
    let digits = &bytes[1..];
    match parse_hex(digits, 2) {
        Some(byte) => DecodeStep::from_byte(3, u8::try_from(byte).unwrap_or_default()),
        None if may_become_hex(digits, 2) && !at_end => DecodeStep::NeedMore,
        None => DecodeStep::from_byte(1, b'%'),
    }
}

/// Decodes a character of HTML: `&amp;`, `&#38;`, `&#x26;`.
fn decode_entity(bytes: &[u8], at_end: bool) -> DecodeStep {
    match decode_entity_start(bytes) {
        DecodeStep::NeedMore if at_end => DecodeStep::from_byte(1, bytes[0]),
        step => step,
    }
}

/// Decodes a character of HTML as if more bytes followed.
fn decode_entity_start(bytes: &[u8]) -> DecodeStep {
    let (begin, radix) = match bytes {
        [b'&', b'#', b'x' | b'X', ..] => (3, 16),
        [b'&', b'#', ..] => (2, 10),
        _ => return decode_name(bytes),
    };
    let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
    let digits = bytes[begin..].iter().take_while(|b| is_digit(b)).count();
    let end = begin + digits;
    let number = std::str::from_utf8(&bytes[begin..end]).ok();
    let code = number.and_then(|number| u32::from_str_radix(number, radix).ok());
    match (bytes.get(end), code) {
        (Some(b';'), Some(code)) => DecodeStep::from_char(end + 1, char_or_replacement(code)),
        (None, _) if end < MAX_REFERENCE_BYTES => DecodeStep::NeedMore,
        _ => DecodeStep::from_byte(1, bytes[0]),
    }
}

/// Decodes a name of HTML as if more bytes followed.
fn decode_name(bytes: &[u8]) -> DecodeStep {
    let begun = &bytes[1..];
    if let Some(name) = begun.strip_suffix(b";")
        && let Some(decoded) = HTML_NAMES.get(name)
    {
        return DecodeStep::from_bytes(bytes.len(), decoded.as_bytes());
    }
    let next = HTML_NAMES.range(begun..).next();
    if next.is_some_and(|(name, _)| name.starts_with(begun)) {
        return DecodeStep::NeedMore;
    }
    DecodeStep::from_byte(1, bytes[0])
}

/// Counts leading backslashes, up to `max`.
fn count_backslashes(bytes: &[u8], max: usize) -> usize {
    let backslashes = bytes.iter().take_while(|byte| **byte == b'\\');
    backslashes.take(max).count()
}

/// Parses the first `count` bytes as a hexadecimal number.
fn parse_hex(bytes: &[u8], count: usize) -> Option<u32> {
    let digits = bytes.get(..count)?.iter();
    let mut digits = digits.map(|digit| char::from(*digit).to_digit(16));
    digits.try_fold(0, |number, digit| Some(number * 16 + digit?))
}

/// Returns whether more bytes could complete `bytes` to `count` hexadecimal digits.
fn may_become_hex(bytes: &[u8], count: usize) -> bool {
    bytes.len() < count && bytes.iter().all(u8::is_ascii_hexdigit)
}

fn char_or_replacement(code: u32) -> char {
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}
