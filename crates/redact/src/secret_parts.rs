//! The parts of a secret that are secrets themselves: the lines of a key, for example.

/// Lines shorter than this many bytes aren't looked for by themselves: that would hide innocent text.
const MIN_LINE_BYTES: usize = 8;
/// What the first and the last line of a PEM file begin with. They are the same in all such files.
const PEM_FRAME: &str = "-----";

/// Returns what to look for if this value is secret: the value, and, if it has several lines, each of them and all of them
/// joined, because programs indent, prefix, wrap and join lines. A value that isn't valid UTF-8 is also looked for as it
/// is displayed, with U+FFFD.
pub(crate) fn parts_of_secret(value: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(value);
    let mut parts = vec![text.trim().as_bytes().to_vec()];
    if text.as_bytes() != value {
        parts.push(value.trim_ascii().to_vec());
    }
    // Variables often hold line breaks as `\n`, which programs turn into real ones.
    let text = text.replace("\\r", "\r").replace("\\n", "\n");
    let lines: Vec<&str> = text
        .split(['\n', '\r'])
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if lines.len() < 2 {
        return parts;
    }
    let body: Vec<&str> = lines
        .iter()
        .copied()
        .filter(|line| !line.starts_with(PEM_FRAME))
        .collect();
    let joined = [
        lines.join(""),
        lines.join(" "),
        lines.join("\r\n"),
        body.join(""),
        body.join(" "),
    ];
    let long_lines = body.iter().filter(|line| line.len() >= MIN_LINE_BYTES);
    parts.extend(long_lines.map(|line| line.as_bytes().to_vec()));
    parts.extend(joined.map(String::into_bytes));
    parts
}
