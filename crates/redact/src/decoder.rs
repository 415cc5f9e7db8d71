//! Decodes a text byte by byte, and keeps track of where each decoded byte comes from.

#[cfg(test)]
mod tests;

use crate::escapes::{
    DecodeStep, MAX_DECODED_BYTES, decode_entity, decode_escape, decode_nested_escape,
    decode_percent,
};

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
