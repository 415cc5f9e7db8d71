//! Guesses which variables a file means to keep secret, if it can't be read as a whole: its lines are shown all the same.

use std::collections::BTreeSet;

use crate::template::is_variable_name;

/// Returns the names after `secrets:`, up to the next key of the file, and those of all variables in templates.
pub(crate) fn guess_secret_names(text: &str) -> Vec<String> {
    let mut names = BTreeSet::new();
    let mut is_in_secrets = false;
    for line in text.lines() {
        let begins_key =
            line.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '"' | '\''));
        if begins_key {
            is_in_secrets = line.trim_start_matches(['"', '\'']).starts_with("secrets");
        }
        if is_in_secrets {
            names.extend(words(line));
        }
        for after in line.split("${").skip(1) {
            names.extend(words(after).take(1));
        }
    }
    names.into_iter().collect()
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words
        .filter(|word| is_variable_name(word))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_a_file_that_is_broken() {
        let text = "version: 1\nsecrets:\n  - A_TOKEN # of a\n- B_TOKEN\ntools: {a: {x: [\"${C_TOKEN:-none}\", OTHER\n";
        let names = guess_secret_names(text);
        for name in ["A_TOKEN", "B_TOKEN", "C_TOKEN"] {
            assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
        }
        assert!(!names.iter().any(|name| name == "OTHER"), "{names:?}");
        assert!(guess_secret_names("secrets: [D_TOKEN").contains(&"D_TOKEN".to_owned()));
    }
}
