//! Converts byte offsets to lines and columns.

/// A position in a text. Offsets are in bytes; `line` and `column` (in characters) count from 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct LineCol {
    pub offset: usize,
    pub line_start: usize,
    pub line: usize,
    pub column: usize,
}

impl LineCol {
    /// Returns the position at `offset`, or `None` if that is outside the text or within a character. Counts from
    /// `self` if it comes before `offset`: problems are sorted by position, so a text is scanned only once for all of
    /// them.
    pub fn advance_to(self, text: &str, offset: usize) -> Option<Self> {
        let from = if offset < self.offset {
            Self::default()
        } else {
            self
        };
        let skipped = text.get(from.offset..offset)?;
        let (line_start, column) = match skipped.rfind('\n') {
            Some(newline) => (from.offset + newline + 1, 0),
            None => (from.line_start, from.column),
        };
        let column_start = line_start.max(from.offset);
        Some(Self {
            offset,
            line_start,
            line: from.line + skipped.matches('\n').count(),
            column: column + text[column_start..offset].chars().count(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advancing_equals_counting_from_the_start() {
        let text = "a\n名前: x\r\n\n  {é: 1, é: 2}\nend";
        let places: Vec<usize> = (0..=text.len())
            .filter(|at| text.is_char_boundary(*at))
            .collect();
        for (from, to) in places
            .iter()
            .flat_map(|from| places.iter().map(move |to| (*from, *to)))
        {
            let place = LineCol::default().advance_to(text, from).unwrap();
            let place = place.advance_to(text, to).unwrap();
            let before = &text[..to];
            let line = before.rsplit('\n').next().unwrap();
            assert_eq!(place.line, before.matches('\n').count());
            assert_eq!(place.line_start, to - line.len());
            assert_eq!(place.column, line.chars().count());
        }
        assert!(
            LineCol::default().advance_to(text, 3).is_none(),
            "within a character"
        );
        assert!(
            LineCol::default()
                .advance_to(text, text.len() + 1)
                .is_none()
        );
    }
}
