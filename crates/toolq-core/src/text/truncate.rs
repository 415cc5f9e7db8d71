//! Truncation by characters.

use crate::text::escape::is_hidden;

/// Maximum length of a name from outside, in characters.
pub(crate) const MAX_NAME_CHARS: usize = 200;

/// Truncates text to at most `limit` characters, and escapes control characters and characters that
/// can't be seen or change the text direction.
pub fn truncate(text: &str, limit: usize) -> String {
    let mut clipped = String::new();
    for c in text.chars().take(limit) {
        if is_hidden(c) {
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
