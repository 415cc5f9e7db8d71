//! Programs that run another program from their arguments.

mod direct;
mod subcommands;

use crate::tools_file::argv::wrappers::direct::DIRECT_WRAPPERS;
pub(crate) use crate::tools_file::argv::wrappers::subcommands::CONTAINER_OPTIONS;
use crate::tools_file::argv::wrappers::subcommands::SUBCOMMAND_WRAPPERS;

/// A program that runs another program, and where in its arguments that is.
#[derive(Clone, Copy)]
pub(crate) struct Wrapper {
    /// Its names, without a version suffix.
    names: &'static [&'static str],
    /// The subcommand that runs a program, for a program that does other things, too.
    subcommand: Option<&'static str>,
    /// Options whose value is the next element, separated by spaces. All others are flags.
    value_options: &'static str,
    /// Number of operands before the program.
    pub(crate) operands: usize,
    /// Whether `NAME=value` may precede the program.
    pub(crate) takes_variables: bool,
}

const fn wrapper(
    names: &'static [&'static str],
    operands: usize,
    value_options: &'static str,
) -> Wrapper {
    Wrapper {
        names,
        subcommand: None,
        value_options,
        operands,
        takes_variables: false,
    }
}

const fn with_variables(wrapper: Wrapper) -> Wrapper {
    Wrapper {
        takes_variables: true,
        ..wrapper
    }
}

/// How many elements an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionForm {
    /// Only itself: a flag, or an option with its value attached.
    Single,
    /// Itself and the next element.
    WithNext,
}

impl Wrapper {
    /// Returns how many elements `option` takes. In a cluster of short options, the rest of the cluster after one that
    /// takes a value is that value.
    pub(crate) fn option_form(&self, option: &str) -> OptionForm {
        let takes_value = |name: &str| self.value_options.split(' ').any(|known| known == name);
        if option.starts_with("--") || option.len() == 2 || takes_value(option) {
            return if takes_value(option) {
                OptionForm::WithNext
            } else {
                OptionForm::Single
            };
        }
        let letters: Vec<char> = option.chars().skip(1).collect();
        let first_with_value = letters
            .iter()
            .position(|letter| takes_value(&format!("-{letter}")));
        if first_with_value.is_some_and(|position| position + 1 == letters.len()) {
            OptionForm::WithNext
        } else {
            OptionForm::Single
        }
    }
}

/// Strips the directory and version from a program and lowercases it: `python3.12` → `python`, `/usr/bin/env` → `env`.
/// A number that belongs to the name stays.
pub(crate) fn base_name(program: &str) -> String {
    const NAMES_WITH_NUMBERS: [&str; 6] = ["sqlite3", "m4", "7z", "i386", "x86_64", "uname26"];
    let name = program.rsplit('/').next().unwrap_or_default();
    if NAMES_WITH_NUMBERS.contains(&name) {
        return name.to_owned();
    }
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    name.to_ascii_lowercase()
}

/// Returns the wrapper of this name and the index of its first argument, after its subcommand if it needs one.
pub(crate) fn find_wrapper(
    name: &str,
    argv: &[&str],
    after: usize,
) -> Option<(&'static Wrapper, usize)> {
    let mut wrappers = DIRECT_WRAPPERS.iter().chain(&SUBCOMMAND_WRAPPERS);
    wrappers.find_map(|wrapper| {
        if !wrapper.names.contains(&name) {
            return None;
        }
        match wrapper.subcommand {
            None => Some((wrapper, after)),
            Some(subcommand) => {
                let position = argv[after..]
                    .iter()
                    .position(|element| *element == subcommand)?;
                Some((wrapper, after + position + 1))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::collections::HashSet;

    /// A name that [`base_name`] would shorten is never found.
    #[test]
    fn each_wrapper_is_found_by_its_name_and_is_there_once() {
        let mut found = HashSet::new();
        for wrapper in DIRECT_WRAPPERS.iter().chain(&SUBCOMMAND_WRAPPERS) {
            for name in wrapper.names {
                assert_eq!(base_name(name), *name);
                assert!(found.insert((name, wrapper.subcommand)), "{name}");
            }
        }
    }
}
