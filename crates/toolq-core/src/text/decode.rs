//! Decodes the text of files that people write.

/// What some editors begin a file with.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Returns the text of a file in UTF-8, without a byte order mark.
///
/// # Errors
/// What isn't UTF-8, and on which line and at which byte of it, both counted from 1.
pub fn decode_text(bytes: Vec<u8>) -> Result<String, String> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let lines: Vec<&[u8]> = before.split(|byte| *byte == b'\n').collect();
        let line = lines.len();
        let column = lines.last().map_or(0, |line| line.len()) + 1;
        format!("line {line} isn't valid UTF-8 (at byte {column} of the line)")
    })?;
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        let decoded = |bytes: &[u8]| decode_text(bytes.to_vec());
        assert_eq!(decoded(b"\xef\xbb\xbfa: \xc3\xa9"), Ok("a: é".to_owned()));
        assert_eq!(decoded(b""), Ok(String::new()));
    }

    #[test]
    fn what_is_not_utf_8_is_located() {
        let refused = |bytes: &[u8]| decode_text(bytes.to_vec()).unwrap_err();
        assert!(refused(b"\xff").contains("line 1 isn't valid UTF-8 (at byte 1 "));
        assert!(refused(b"a\nb\n\xc3\xa9\xff").contains("line 3 isn't valid UTF-8 (at byte 3 "));
    }
}
