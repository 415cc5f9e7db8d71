//! Finds shell scripts that run a value instead of handing it on.

use std::collections::BTreeSet;

use crate::tools_file::argv::{ArgRole, classify_args};
use crate::tools_file::lints::shell_words::{ShellWord, split_commands};

/// Builtins that evaluate the name of a variable, which may be `a[$(…)]`, or set one that decides what runs.
const NAMING_BUILTINS: [&str; 7] = [
    "declare", "export", "local", "read", "readonly", "typeset", "unset",
];

/// Whether `script` runs one of `values`, or a part of it. They are the names of parameters, such as `1` or `QUERY`.
/// A script that is nothing but `eval "$QUERY"` doesn't count: there, running the value is what the author wants.
pub(crate) fn runs_any_value(script: &str, values: &BTreeSet<String>) -> bool {
    if is_only_eval(script) {
        return false;
    }
    // The lines of a here-document aren't commands.
    if script.replace("<<<", "").contains("<<") {
        return false;
    }
    let mut values = values.clone();
    let commands = split_commands(script);
    // A variable that is set to a value holds it, too.
    for word in commands.iter().flatten() {
        if let Some(name) = word.assigned_variable()
            && word
                .parameters()
                .any(|parameter| values.contains(parameter))
        {
            values.insert(name.to_owned());
        }
    }
    commands
        .iter()
        .any(|words| command_runs_value(words, &values))
}

fn is_only_eval(script: &str) -> bool {
    let name = script.trim().strip_prefix("eval \"$");
    let name = name.and_then(|rest| rest.strip_suffix('"'));
    name.is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

fn command_runs_value(words: &[ShellWord], values: &BTreeSet<String>) -> bool {
    let holds_value = |word: &ShellWord| word.parameters().any(|name| values.contains(name));
    let first = words
        .iter()
        .position(|word| word.assigned_variable().is_none());
    let words = &words[first.unwrap_or(words.len())..];
    if !words.iter().any(holds_value) {
        return false;
    }
    match words[0].plain_text().as_str() {
        "eval" => true,
        "." | "source" => words.get(1).is_some_and(holds_value),
        "[[" | "case" | "for" => false,
        name if NAMING_BUILTINS.contains(&name) => {
            let is_integer = words.iter().any(|word| word.plain_text() == "-i");
            is_integer
                || words[1..]
                    .iter()
                    .any(|word| word.begins_with_parameter(values))
        }
        name => !is_syntax_check(name, &words[1..]) && is_program_or_code(words, values),
    }
}

/// Whether this is `sh -n FILE`, which reads a script without running it.
fn is_syntax_check(name: &str, arguments: &[ShellWord]) -> bool {
    let options = arguments.iter().map(ShellWord::plain_text);
    let mut options = options.take_while(|text| text.starts_with('-'));
    matches!(name, "sh" | "bash" | "dash" | "ksh" | "zsh") && options.any(|option| option == "-n")
}

/// Whether a value is the program that this command runs, or code for it.
fn is_program_or_code(words: &[ShellWord], values: &BTreeSet<String>) -> bool {
    let texts: Vec<String> = words.iter().map(|word| word.as_template(values)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let roles = classify_args(&texts);
    words.iter().zip(&roles).any(|(word, role)| {
        let is_run = matches!(role, ArgRole::Program | ArgRole::Code | ArgRole::Script);
        is_run && word.parameters().any(|name| values.contains(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs_value(script: &str) -> bool {
        let values = ["1", "2", "QUERY"].map(str::to_owned);
        runs_any_value(script, &values.into())
    }

    #[test]
    fn a_script_that_runs_a_value_is_found() {
        for script in [
            "$1",
            "\"$1\" -x",
            "true; $1",
            "x=1 $1",
            "if true; then \"$1\"; fi",
            "eval \"echo $1\"",
            ". \"$1\"",
            "sh -c \"$1\"",
            "sh \"$1\" -n",
            "sh -c \"ls ${1}\"",
            "sh -c \"$QUERY\"",
            "echo \"$(sh -c \"$1\")\"",
            "cat f | xargs env \"$1\"",
            "sed \"s/a/$1/\" f",
            "find . -exec \"$1\" {} +",
            "x=$1; eval \"$x\"",
            "declare -i n=\"$1\"",
            "export \"$1\"",
            "read \"$1\" < f",
        ] {
            assert!(runs_value(script), "{script}");
        }
    }

    #[test]
    fn a_script_that_hands_a_value_on_is_fine() {
        for script in [
            "cat \"$1\"",
            "wc -w -- \"$1\" | sort",
            "cat > \"$1\"",
            "x=$1; cat \"$x\"",
            "case $1 in a) echo b;; esac",
            "[[ $1 = x ]] && echo y",
            "echo '$1'",
            "echo \\$1",
            "grep -e \"$1\" notes",
            "echo \"$HOME\" $OTHER",
            "test \"$QUERY\" = true && set -- -i \"$@\"",
            "exec grep -nH \"$@\"",
            "export NAME=\"$1\"",
            "sh -c 'cat \"$1\"' -- \"$1\"",
            "# it's $1\necho a",
            "printf '%s' \"${1:-x}\"",
            "cat <<END\n$1\nEND",
            "echo $(( ($1 + 1) * 2 ))",
            "eval \"$QUERY\"",
            "sh -n \"$1\" && echo ok",
            "(( $1 > 2 )) && echo a",
        ] {
            assert!(!runs_value(script), "{script}");
        }
    }
}
