/// Where a problem begins: in bytes, and its line and column, both from 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    pub at: usize,
    pub line_start: usize,
    pub line: usize,
    pub column: usize,
}

impl Place {
    /// The same of `at`. Problems stand in the order of the file, so that no part of a text is counted again for each,
    /// however long its lines are. None where the text has no such place.
    pub fn moved(self, text: &str, at: usize) -> Option<Self> {
        let from = if at < self.at { Self::default() } else { self };
        let passed = text.get(from.at..at)?;
        let (line_start, column) = match passed.rfind('\n') {
            Some(newline) => (from.at + newline + 1, 0),
            None => (from.line_start, from.column),
        };
        let since = line_start.max(from.at);
        Some(Self {
            at,
            line_start,
            line: from.line + passed.matches('\n').count(),
            column: column + text[since..at].chars().count(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever stood before it, a place is the one that is counted from the beginning.
    #[test]
    fn places_are_counted_on() {
        let text = "a\n名前: x\r\n\n  {é: 1, é: 2}\nend";
        let places: Vec<usize> = (0..=text.len())
            .filter(|at| text.is_char_boundary(*at))
            .collect();
        for (from, to) in places
            .iter()
            .flat_map(|from| places.iter().map(move |to| (*from, *to)))
        {
            let place = Place::default().moved(text, from).unwrap();
            let place = place.moved(text, to).unwrap();
            let before = &text[..to];
            let line = before.rsplit('\n').next().unwrap();
            assert_eq!(place.line, before.matches('\n').count());
            assert_eq!(place.line_start, to - line.len());
            assert_eq!(place.column, line.chars().count());
        }
        assert!(
            Place::default().moved(text, 3).is_none(),
            "within a character"
        );
        assert!(Place::default().moved(text, text.len() + 1).is_none());
    }
}
