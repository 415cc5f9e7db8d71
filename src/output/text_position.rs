//! Converts byte offsets to lines and columns.

use toolq_core::text::line_starts;

/// A position in a text. Offsets are in bytes; `line` and `column` (in characters) count from 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct TextPosition {
    pub offset: usize,
    pub line_start: usize,
    pub line: usize,
    pub column: usize,
}

impl TextPosition {
    /// Returns the position at `offset`, or `None` if that is outside the text or within a character. Counts from
    /// `self` if it comes before `offset`: problems are sorted by position, so a text is scanned only once for all of
    /// them.
    pub fn advance_to(self, text: &str, offset: usize) -> Option<Self> {
        let from = if offset < self.offset {
            Self::default()
        } else {
            self
        };
        text.get(from.offset..offset)?;
        let starts = || line_starts(text, from.offset..offset);
        let (line_start, column) = match starts().last() {
            Some(start) => (start, 0),
            None => (from.line_start, from.column),
        };
        let column_start = line_start.max(from.offset);
        Some(Self {
            offset,
            line_start,
            line: from.line + starts().count(),
            column: column + text[column_start..offset].chars().count(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advancing_equals_counting_from_the_start() {
        let text = "a\n名前: x\r\n\n  {é: 1, é: 2}\nend\r\r\nx";
        let places: Vec<usize> = (0..=text.len())
            .filter(|at| text.is_char_boundary(*at))
            .collect();
        for (from, to) in places
            .iter()
            .flat_map(|from| places.iter().map(move |to| (*from, *to)))
        {
            let place = TextPosition::default().advance_to(text, from).unwrap();
            let place = place.advance_to(text, to).unwrap();
            let before = &text[..to];
            let is_within_break = before.ends_with('\r') && text[to..].starts_with('\n');
            let counted = &before[..to - usize::from(is_within_break)];
            let line_start = counted.rfind(['\n', '\r']).map_or(0, |at| at + 1);
            let breaks = counted.replace("\r\n", "\n").replace('\r', "\n");
            assert_eq!(place.line, breaks.matches('\n').count());
            assert_eq!(place.line_start, line_start);
            assert_eq!(place.column, before[line_start..].chars().count());
        }
        assert!(
            TextPosition::default().advance_to(text, 3).is_none(),
            "within a character"
        );
        assert!(
            TextPosition::default()
                .advance_to(text, text.len() + 1)
                .is_none()
        );
    }
}
