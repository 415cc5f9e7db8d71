//! Finds shell scripts that evaluate a value as a number, or as the name of a variable: `a[$(…)]` runs a command there.

use std::collections::BTreeSet;

use crate::tools_file::lints::shell_words::split_commands;

/// How scripts tell numbers from other texts: `case $1 in *[!0-9]*) exit 2;; esac`, `[[ $1 =~ ^[0-9]+$ ]] || exit 2`.
const NUMBER_CHECKS: [&str; 2] = ["*[!0-9]*", "=~ ^[0-9]+$"];

/// Whether `script` evaluates one of `values`. They are the names of parameters, such as `1` or `COUNT`.
pub(crate) fn evaluates_any_value(script: &str, values: &BTreeSet<String>) -> bool {
    if NUMBER_CHECKS.iter().any(|check| script.contains(check)) {
        return false;
    }
    let holders = add_assigned_variables(script, values);
    let holds = |text: &str| mentions_any(text, &holders);
    let in_arithmetic = enclosed(script, "((", "))").any(holds);
    let in_index = indices(script).any(holds);
    let in_substring = enclosed(script, "${", "}").any(|expansion| {
        expansion
            .split(":$")
            .skip(1)
            .any(|part| holds(&format!("${part}")))
    });
    let in_condition =
        enclosed(script, "[[", "]]").any(|condition| is_evaluating(condition) && holds(condition));
    in_arithmetic || in_index || in_substring || in_condition || names_variable(script, &holders)
}

/// Returns the indices of arrays in a script: `$1` of `${a[$1]}`, but nothing of `echo "[$1]"`.
fn indices(script: &str) -> impl Iterator<Item = &str> {
    script.match_indices("[$").filter_map(|(at, _)| {
        let follows_name = script[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let rest = &script[at + 1..];
        follows_name.then(|| &rest[..rest.find(']').unwrap_or(rest.len())])
    })
}

/// A variable that is set to a value holds it, too.
fn add_assigned_variables(script: &str, values: &BTreeSet<String>) -> BTreeSet<String> {
    let mut holders = values.clone();
    for word in split_commands(script).iter().flatten() {
        if let Some(name) = word.assigned_variable()
            && word.parameters().any(|name| holders.contains(name))
        {
            holders.insert(name.to_owned());
        }
    }
    holders
}

/// Whether `[[ … ]]` compares numbers, or asks whether a variable is set.
fn is_evaluating(condition: &str) -> bool {
    const OPERATORS: [&str; 7] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge", " -v "];
    OPERATORS
        .iter()
        .any(|operator| condition.contains(operator))
}

/// Whether a builtin takes the text of a value for an expression or the name of a variable.
fn names_variable(script: &str, holders: &BTreeSet<String>) -> bool {
    const FORMS: [&str; 7] = [
        "test -v \"$",
        "test -v $",
        "[ -v \"$",
        "[ -v $",
        "let ",
        "printf -v \"$",
        "printf -v $",
    ];
    FORMS.iter().any(|form| {
        script.match_indices(form).any(|(at, _)| {
            let line = script[at..].lines().next().unwrap_or_default();
            mentions_any(line, holders)
        })
    })
}

/// Returns the texts between each `open` and the next `close`.
fn enclosed<'s>(script: &'s str, open: &'s str, close: &'s str) -> impl Iterator<Item = &'s str> {
    script.match_indices(open).map(move |(at, _)| {
        let rest = &script[at + open.len()..];
        &rest[..rest.find(close).unwrap_or(rest.len())]
    })
}

/// Whether an expression names one of `holders`: `$1`, `${1`, `$COUNT`, or `COUNT` alone. `$@` and `$*` are all arguments.
fn mentions_any(text: &str, holders: &BTreeSet<String>) -> bool {
    let is_digit = |c: char| c.is_ascii_digit();
    let holds_argument = holders.iter().any(|name| name.chars().all(is_digit));
    if holds_argument
        && ["$@", "$*", "${@", "${*"]
            .iter()
            .any(|all| text.contains(all))
    {
        return true;
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = text;
    while let Some(start) = rest.find(is_part) {
        let end = rest[start..]
            .find(|c| !is_part(c))
            .map_or(rest.len(), |len| start + len);
        let is_parameter = rest[..start].trim_end_matches('{').ends_with('$');
        // Of `$12`, a shell reads `$1`.
        let name = &rest[start..end];
        let name = if is_parameter && name.starts_with(is_digit) && !rest[..start].ends_with('{') {
            &name[..1]
        } else {
            name
        };
        let is_number = name.chars().all(is_digit);
        if holders.contains(name) && (is_parameter || !is_number) {
            return true;
        }
        rest = &rest[end..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_evaluate_a_value_are_found() {
        let values = BTreeSet::from(["1", "2", "COUNT"].map(str::to_owned));
        for script in [
            "[[ $1 -eq 1 ]]",
            "[[ \"$2\" -gt 3 && x = y ]]",
            "echo $(( $1 + 1 ))",
            "(( ${1} > 2 ))",
            "echo $(( COUNT + 1 ))",
            "n=\"$1\"; echo $((n + 1))",
            "n=$COUNT m=$n; [[ m -lt 3 ]]",
            "test -v \"$1\"",
            "[[ -v $1 ]]",
            "echo ${list[$1]}",
            "echo \"${list[$COUNT]}\"",
            "echo \"${text:$1}\"",
            "echo \"${text:0:$2}\"",
            "let x=$1",
            "(( $@ ))",
        ] {
            assert!(evaluates_any_value(script, &values), "{script}");
        }
        for script in [
            "echo \"$1\"",
            "[ \"$1\" -eq 1 ]",
            "[[ $1 = x ]]",
            "[[ $3 -eq 1 ]]",
            "[[ $1 =~ ^[0-9]+$ ]]",
            "x=$((x + 1)); echo \"$1\"",
            "x=$((1 + 2)); echo \"${1:-none}\" \"${COUNT:+x}\"",
            "case $1 in [a-z]) ;; esac",
            "echo \"[$1]\" \"[$COUNT]\"",
            "case $1 in *[!0-9]*) exit 2;; esac; echo $(( $1 + 1 ))",
        ] {
            assert!(!evaluates_any_value(script, &values), "{script}");
        }
    }
}
