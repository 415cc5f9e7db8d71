//! Where a text that may have invalid bytes can be cut, so that its parts decode to what the whole decodes to.

/// The longest encoding of a character.
pub(super) const MAX_CHAR_BYTES: usize = 4;

/// Returns the last place at or before `at` where `bytes` can be cut. `bytes` must have the [`MAX_CHAR_BYTES`] - 1 bytes before and
/// after `at`, where the text has them.
pub(super) fn floor_boundary(bytes: &[u8], at: usize) -> usize {
    let earliest = at.saturating_sub(MAX_CHAR_BYTES - 1);
    let is_first = |place: &usize| {
        bytes
            .get(*place)
            .is_some_and(|byte| !is_continuation(*byte))
    };
    match (earliest..at).rfind(is_first) {
        Some(first) if first + unit_len(&bytes[first..]) > at => first,
        _ => at,
    }
}

/// Returns the length of the bytes that decode to the first character: its own, or invalid ones that become one
/// replacement character. `bytes` begins where a text can be cut.
pub(super) fn unit_len(bytes: &[u8]) -> usize {
    let bytes = &bytes[..bytes.len().min(MAX_CHAR_BYTES)];
    let Some(chunk) = bytes.utf8_chunks().next() else {
        return 0;
    };
    match chunk.valid().chars().next() {
        Some(first) => first.len_utf8(),
        None => chunk.invalid().len(),
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}
