//! Names that a reader is told: clipped, escaped, and the one that was probably meant.

/// Characters of a name that came from outside.
pub(crate) const MAX_NAME: usize = 200;

/// At most `limit` characters, control characters and direction marks escaped.
pub fn clipped(text: &str, limit: usize) -> String {
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

/// Characters that reorder or hide the text around them.
fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}
