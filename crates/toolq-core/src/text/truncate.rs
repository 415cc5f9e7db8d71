//! Truncation by characters.

/// Maximum length of a name from outside, in characters.
pub(crate) const MAX_NAME_CHARS: usize = 200;

/// Truncates text to at most `limit` characters, and escapes control characters and direction marks.
pub fn truncate(text: &str, limit: usize) -> String {
    let mut clipped = String::new();
    for c in text.chars().take(limit) {
        if c.is_control() || is_direction_mark(c) {
            clipped.extend(c.escape_unicode());
        } else {
            clipped.push(c);
        }
    }
    if text.chars().nth(limit).is_some() {
        clipped.push('…');
    }
    clipped
}

/// Whether `c` reorders or hides the text around it.
fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}
