//! The lines of a text, as YAML counts them.

use std::ops::Range;

/// Returns where a line begins after each line break that ends within `range`. A break is `\n`, `\r\n`, or `\r` alone.
pub fn line_starts(text: &str, range: Range<usize>) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    let ends_line = move |at: &usize| match bytes.get(*at) {
        Some(b'\n') => true,
        Some(b'\r') => bytes.get(at + 1) != Some(&b'\n'),
        _ => false,
    };
    range.filter(ends_line).map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line_break_begins_a_line() {
        let text = "a\nb\r\nc\rd\r\r\n";
        let found: Vec<usize> = line_starts(text, 0..text.len()).collect();
        assert_eq!(found, [2, 5, 7, 9, 11]);
        let halves = line_starts(text, 0..4).chain(line_starts(text, 4..text.len()));
        assert_eq!(halves.collect::<Vec<_>>(), found, "cut within a break");
    }
}
