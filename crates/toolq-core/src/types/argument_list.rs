//! The arguments of a program.

use std::fmt;

/// The program and its arguments.
#[derive(Clone, PartialEq, Eq)]
pub enum ArgumentList {
    /// One after another in a single text, because a turn may have a million calls. Each ends at a NUL character.
    Text(Box<str>),
    /// One of them contains a NUL character, so the program can't be started with them.
    WithNul(Box<[Box<str>]>),
}

impl ArgumentList {
    /// Returns the program and its arguments.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let (text, list) = match self {
            Self::Text(text) => (&**text, &[][..]),
            Self::WithNul(list) => ("", &**list),
        };
        text.split_terminator('\0')
            .chain(list.iter().map(|argument| &**argument))
    }

    /// Returns the program. Empty if there is none.
    pub fn program(&self) -> &str {
        self.iter().next().unwrap_or_default()
    }
}

impl Default for ArgumentList {
    fn default() -> Self {
        Self::Text(Box::default())
    }
}

impl<T: AsRef<str>> FromIterator<T> for ArgumentList {
    fn from_iter<I: IntoIterator<Item = T>>(arguments: I) -> Self {
        let mut text = String::new();
        let mut ends = Vec::new();
        for argument in arguments {
            text.push_str(argument.as_ref());
            ends.push(text.len());
            text.push('\0');
        }
        if text.matches('\0').count() == ends.len() {
            return Self::Text(text.into());
        }
        let begins = std::iter::once(0).chain(ends.iter().map(|end| end + 1));
        let arguments = begins
            .zip(&ends)
            .map(|(begin, end)| text[begin..*end].into());
        Self::WithNul(arguments.collect())
    }
}

impl<const N: usize> PartialEq<[&str; N]> for ArgumentList {
    fn eq(&self, other: &[&str; N]) -> bool {
        self.iter().eq(other.iter().copied())
    }
}

impl fmt::Debug for ArgumentList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_stays_one() {
        for arguments in [&[][..], &[""], &["", ""], &["cat", "", "a b", ""]] {
            let list: ArgumentList = arguments.iter().collect();
            assert_eq!(list.iter().collect::<Vec<_>>(), arguments);
            assert_eq!(format!("{list:?}"), format!("{arguments:?}"));
        }
    }

    /// Otherwise, one value could become two arguments, or lose its end.
    #[test]
    fn a_nul_character_neither_splits_nor_ends_an_argument() {
        let arguments = ["cat", "a\0-rf", "", "b\0"];
        let list: ArgumentList = arguments.iter().collect();
        assert_eq!(list.iter().collect::<Vec<_>>(), arguments);
    }
}
