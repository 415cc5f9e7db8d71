//! `wrapper`: a program that runs the programs of tools.

use schemars::JsonSchema;
use serde::Deserialize;

/// A program that runs another, and its arguments before that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandWrapper {
    /// The program and its arguments: never empty, and without values from an input.
    pub argv: Vec<String>,
    /// How it gets what it runs.
    pub quoting: WrapperQuoting,
    /// The program in `argv` that hands over to a daemon or another host, whose processes don't end with the call.
    pub hands_over_to: Option<String>,
}

/// How a wrapper gets the program and its arguments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WrapperQuoting {
    /// As arguments.
    #[default]
    None,
    /// As one argument: a text in which each of them is quoted for a POSIX shell.
    Posix,
}

impl CommandWrapper {
    /// Returns the argument list that runs `argv` in this wrapper.
    pub fn wrap(&self, argv: Vec<String>) -> Vec<String> {
        let mut wrapped = self.argv.clone();
        match self.quoting {
            WrapperQuoting::None => wrapped.extend(argv),
            WrapperQuoting::Posix => {
                let words: Vec<String> = argv.iter().map(|word| quote_posix(word)).collect();
                wrapped.push(words.join(" "));
            }
        }
        wrapped
    }
}

/// Quotes any text as one word for a POSIX shell. Always with quotes: a word such as `if` or `A=1` means something without.
fn quote_posix(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_quoted_or_stays_an_argument() {
        let argv = || ["echo", "a b", "it's", ""].map(str::to_owned).to_vec();
        let mut wrapper = CommandWrapper {
            argv: vec!["ssh".to_owned(), "host".to_owned()],
            quoting: WrapperQuoting::Posix,
            hands_over_to: None,
        };
        let expected = ["ssh", "host", r"'echo' 'a b' 'it'\''s' ''"];
        assert_eq!(wrapper.wrap(argv()), expected);
        wrapper.quoting = WrapperQuoting::None;
        let expected = ["ssh", "host", "echo", "a b", "it's", ""];
        assert_eq!(wrapper.wrap(argv()), expected);
    }
}
