//! The arguments of a program.

use std::fmt;

/// The program and its arguments, one after another in a single text: a turn may have a million calls.
///
/// Each ends at a NUL character, as it does for the program. None contains one, since neither a tools file nor an input may
/// pass one to a program.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ArgumentList(Box<str>);

impl ArgumentList {
    /// Returns the program and its arguments.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split_terminator('\0')
    }

    /// Returns the program. Empty if there is none.
    pub fn program(&self) -> &str {
        self.iter().next().unwrap_or_default()
    }
}

impl<T: AsRef<str>> FromIterator<T> for ArgumentList {
    fn from_iter<I: IntoIterator<Item = T>>(arguments: I) -> Self {
        let mut text = String::new();
        for argument in arguments {
            let argument = argument.as_ref();
            let (argument, _) = argument.split_once('\0').unwrap_or((argument, ""));
            text.push_str(argument);
            text.push('\0');
        }
        Self(text.into())
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

    /// Otherwise, one value could become two arguments.
    #[test]
    fn an_argument_ends_at_a_nul_character() {
        let list: ArgumentList = ["cat", "a\0-rf", "b"].iter().collect();
        assert_eq!(list.iter().collect::<Vec<_>>(), ["cat", "a", "b"]);
    }
}
