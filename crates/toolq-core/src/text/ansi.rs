/// The text in a style of a terminal (`1` bold, `2` dim, `31` red, `36` cyan …), or as it is where there is no `color`.
pub fn paint(text: &str, style: &str, color: bool) -> String {
    if color {
        format!("\x1b[{style}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}
