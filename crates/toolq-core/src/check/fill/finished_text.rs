//! Finds the paths in one argument or variable, once its values are filled in.

use std::ops::Range;

use crate::check::fill::path_texts::PathText;

/// An argument or variable, and where its paths may begin and end.
pub(crate) struct FinishedText {
    text: String,
    starts: Vec<usize>,
    /// The values named in `paths`, with their pointers.
    values: Vec<(Range<usize>, String)>,
    /// The paths before the last variable, whose value isn't known.
    found: Vec<PathText>,
    /// Where a program may split the text.
    separators: Vec<char>,
    /// Whether a variable precedes the text.
    is_continued: bool,
}

impl FinishedText {
    /// Creates an empty text. Its first path begins at `start`.
    pub(crate) fn new(start: usize, separators: Vec<char>) -> Self {
        Self {
            text: String::new(),
            starts: vec![start],
            values: Vec::new(),
            found: Vec::new(),
            separators,
            is_continued: false,
        }
    }

    /// Adds text that isn't named in `paths`.
    pub(crate) fn push_text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds text that isn't known, so that no path continues after it.
    pub(crate) fn push_unknown(&mut self) {
        self.collect_paths();
        self.text.clear();
        self.starts.clear();
        self.values.clear();
        self.is_continued = true;
    }

    /// Adds a value that is named in `paths`.
    pub(crate) fn push_path(&mut self, pointer: String, value: &str) {
        let start = self.text.len();
        let continues_path = self.text.ends_with('/') && !self.starts.is_empty();
        if !continues_path && !self.starts.contains(&start) {
            self.starts.push(start);
        }
        self.text.push_str(value);
        self.values.push((start..self.text.len(), pointer));
    }

    /// Returns the paths, each once.
    pub(crate) fn into_paths(mut self) -> Vec<PathText> {
        self.collect_paths();
        self.found
    }

    /// Collects the text from each start to the end of the text, and to the end of each value after which a program
    /// could split it.
    fn collect_paths(&mut self) {
        let continues = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
        let whole = self.text.len();
        for start in self.starts.clone() {
            let values = self.values.iter().filter(|(value, _)| value.end >= start);
            let mut ends: Vec<(usize, String)> = values
                .map(|(value, pointer)| (value.end, pointer.clone()))
                .collect();
            let first = ends.first().map(|(_, pointer)| (whole, pointer.clone()));
            ends.retain(|(end, _)| *end < whole && !self.text[*end..].starts_with(continues));
            for (end, pointer) in first.into_iter().chain(ends) {
                self.collect(start..end, pointer, false);
            }
        }
        self.collect_guesses();
    }

    /// Collects what the text means to a program that separates it elsewhere: not at all, or also within a value. So
    /// `{a}:{b}` can become three paths, and `x=y/{name}` can be below the directory `x=y`.
    fn collect_guesses(&mut self) {
        if let Some((_, pointer)) = self.values.first().cloned()
            && !self.is_continued
        {
            self.collect(0..self.text.len(), pointer, true);
        }
        let mut start = 0;
        let ends = self.text.match_indices(self.separators.as_slice());
        let mut ends: Vec<usize> = ends.map(|(index, _)| index).collect();
        ends.push(self.text.len());
        for end in ends {
            let of_piece =
                |(value, _): &&(Range<usize>, String)| value.start < end && start < value.end;
            if let Some((value, pointer)) = self.values.iter().find(of_piece).cloned() {
                // The author's absolute path is meant, and what a variable holds isn't known.
                let is_absolute = start < value.start && self.text[start..].starts_with('/');
                if start == 0 && self.is_continued {
                    self.collect(value.start..end, pointer, true);
                } else if !is_absolute {
                    self.collect(start..end, pointer, true);
                }
            }
            start = end + 1;
        }
    }

    fn collect(&mut self, range: Range<usize>, pointer: String, is_guess: bool) {
        let text = Some(self.text[range].to_owned());
        let is_known = |path: &PathText| path.pointer == pointer && path.text == text;
        if !self.found.iter().any(is_known) {
            self.found.push(PathText {
                pointer,
                text,
                is_guess,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the pointer and text of each path, and whether it's only a guess.
    fn paths_in(finished: FinishedText) -> Vec<(String, String, bool)> {
        let paths = finished.into_paths().into_iter();
        paths
            .map(|path| (path.pointer, path.text.unwrap_or_default(), path.is_guess))
            .collect()
    }

    fn path(pointer: &str, text: &str, is_guess: bool) -> (String, String, bool) {
        (pointer.to_owned(), text.to_owned(), is_guess)
    }

    /// In `{p},ro`, programs read the path up to the comma, or all of it.
    #[test]
    fn a_path_may_end_with_its_value() {
        let mut finished = FinishedText::new(0, vec![':']);
        finished.push_path("/p".to_owned(), "../x");
        finished.push_text(",ro");
        let paths = paths_in(finished);
        assert!(paths.contains(&path("/p", "../x", false)), "{paths:?}");
        assert!(paths.contains(&path("/p", "../x,ro", false)), "{paths:?}");
    }

    /// Only an absolute path that the author wrote is meant: `/lib/{p}`, but not `x:{p}`.
    #[test]
    fn an_absolute_path_from_a_value_is_judged_up_to_a_separator() {
        let mut finished = FinishedText::new(0, vec![':']);
        finished.push_text("x:");
        finished.push_path("/p".to_owned(), "/etc:/b");
        let paths = paths_in(finished);
        assert!(paths.contains(&path("/p", "/etc", true)), "{paths:?}");
    }

    /// The content of a variable is unknown, so a path after it begins with the value.
    #[test]
    fn pieces_of_a_value_behind_a_variable_are_judged() {
        let mut finished = FinishedText::new(0, vec![':']);
        finished.push_unknown();
        finished.push_text("/lib/");
        finished.push_path("/p".to_owned(), "a:b");
        let paths = paths_in(finished);
        assert!(paths.contains(&path("/p", "a", true)), "{paths:?}");
        assert!(paths.contains(&path("/p", "b", true)), "{paths:?}");
    }

    #[test]
    fn the_same_path_of_two_inputs_is_judged_for_both() {
        let mut finished = FinishedText::new(0, vec![':']);
        finished.push_path("/a".to_owned(), "x");
        finished.push_text(":");
        finished.push_path("/b".to_owned(), "x");
        let paths = paths_in(finished);
        let pointers = |pointer: &str| {
            let of_pointer = paths
                .iter()
                .filter(|path| path.0 == pointer && path.1 == "x");
            of_pointer.count()
        };
        assert_eq!((pointers("/a"), pointers("/b")), (1, 1), "{paths:?}");
    }
}
