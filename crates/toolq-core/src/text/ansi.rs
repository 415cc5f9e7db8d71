//! Terminal colors.

/// Applies a terminal style to the text (`1` bold, `2` dim, `31` red, `36` cyan …), unless `color` is false.
pub fn paint(text: &str, style: &str, color: bool) -> String {
    if color {
        format!("\x1b[{style}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}
