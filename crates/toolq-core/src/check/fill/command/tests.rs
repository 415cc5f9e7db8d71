//! Arguments that are refused or changed because of what a program could take them for.

use serde_json::{Value, json};

use super::*;

use crate::check::fill::invocation::build_probe;
use crate::testing::{sample_template, tool_with_backing};
use crate::types::{Backing, CommandLimits, Leftovers};

fn backing(argument: &str, digits_only: bool) -> CommandBacking {
    CommandBacking {
        program: "prog".to_owned(),
        arguments: vec![ArgumentTemplate {
            template: sample_template(argument),
            digits_only,
        }],
        dashes: Vec::new(),
        stdin: StdinSource::None,
        env: Vec::new(),
        pass_env: Vec::new(),
        cwd: "/".into(),
        success_exit: vec![0],
        leftovers: Leftovers::default(),
        limits: CommandLimits::default(),
        sandbox: None,
        wrapper: None,
    }
}

/// Fills a command whose input `p` and whose list `paths` are paths. Returns its arguments, or what is wrong.
fn fill(backing: &CommandBacking, input: &Value) -> Result<Vec<String>, Vec<String>> {
    let input = Input::parse(&input.to_string()).unwrap();
    let paths = ["p", "paths"].map(|name| vec![name.to_owned()]);
    let mut problems = ProblemCollector::default();
    let filled = fill_command(backing, &paths, &input, &mut problems);
    match problems.0.as_slice() {
        [] => Ok(filled.argv.iter().skip(1).map(str::to_owned).collect()),
        found => Err(found
            .iter()
            .map(|problem| format!("{}: {}", problem.path, problem.message))
            .collect()),
    }
}

/// In code, `1e3` or `-1` would mean something else than a number of digits.
#[test]
fn a_number_in_code_must_be_digits() {
    for (value, is_digits) in [
        (json!(12), true),
        (json!(0), true),
        (json!(-1), false),
        (json!(1.5), false),
        (json!("1"), false),
    ] {
        let input = json!({"n": value});
        assert_eq!(
            fill(&backing("x[{n}]", true), &input).is_ok(),
            is_digits,
            "{value}"
        );
        assert!(fill(&backing("x[{n}]", false), &input).is_ok(), "{value}");
    }
    let refused = fill(&backing("{n}", true), &json!({"n": 1.5})).unwrap_err();
    assert_eq!(refused, ["/n: must be written with digits only"]);
}

/// The rule applies to how a number is written, regardless of where it is in the input. It doesn't apply to a missing
/// value.
#[test]
fn digits_are_judged_as_they_are_written() {
    let refuse = |template: &str, input: &str| {
        let input = Input::parse(input).unwrap();
        let command = backing(template, true);
        let filler = CommandFiller {
            dashes: &[],
            paths: &[],
            input: &input,
        };
        let checked = filler.check_digits(&command.arguments[0].template);
        checked.map_err(|problem| problem.path)
    };
    for digits in ["0", "7", "18446744073709551616"] {
        assert_eq!(refuse("{n}p", &format!(r#"{{"n": {digits}}}"#)), Ok(()));
    }
    for other in [
        "1e3", "1E3", "1.0", "-0", "null", "true", "\"\"", "\"7\"", "[7]", "{}",
    ] {
        let refused = refuse("{n}p", &format!(r#"{{"n": {other}}}"#));
        assert_eq!(refused, Err("/n".to_owned()), "{other}");
    }
    assert_eq!(
        refuse("{from},{at.to}p", r#"{"from": 1, "at": {"to": 2}}"#),
        Ok(())
    );
    assert_eq!(
        refuse("{from},{at.to}p", r#"{"from": 1, "at": {"to": -2}}"#),
        Err("/at/to".to_owned())
    );
    assert_eq!(refuse("{from?}p", "{}"), Ok(()));
}

/// A program like curl opens what follows `@`. With `./` before it, it wouldn't be that anymore.
#[test]
fn a_path_behind_other_text_keeps_that_text_first() {
    let input = json!({"p": "A=1"});
    assert_eq!(fill(&backing("@{p}", false), &input).unwrap(), ["@A=1"]);
    assert_eq!(fill(&backing("=@{p}", false), &input).unwrap(), ["=@A=1"]);
    assert_eq!(fill(&backing("={p}", false), &input).unwrap(), ["=./A=1"]);
}

#[test]
fn only_the_items_of_a_list_of_paths_become_paths() {
    let input = json!({"paths": ["A=1"], "words": ["A=1"]});
    assert_eq!(
        fill(&backing("{paths...}", false), &input).unwrap(),
        ["./A=1"]
    );
    assert_eq!(
        fill(&backing("{words...}", false), &input).unwrap(),
        ["A=1"]
    );
    let nul = fill(
        &backing("{words...}", false),
        &json!({"words": ["a", "b\0"]}),
    );
    assert_eq!(
        nul.unwrap_err(),
        ["/words/1: contains a NUL character, which an argument can't"]
    );
}

/// Each argument also takes a terminator and a pointer.
#[test]
fn arguments_may_be_as_long_together_as_the_system_allows() {
    let longest = MAX_ARGUMENT_BYTES - 1;
    let overhead = 1 + POINTER_BYTES;
    let rest = MAX_TOTAL_BYTES - ("prog".len() + overhead) - 15 * (longest + overhead) - overhead;
    let fill_lengths = |last: usize| {
        let mut words = vec!["x".repeat(longest); 15];
        words.push("x".repeat(last));
        fill(&backing("{words...}", false), &json!({"words": words}))
    };
    assert_eq!(fill_lengths(rest).map(|argv| argv.len()), Ok(16));
    let refused = fill_lengths(rest + 1).unwrap_err();
    assert_eq!(
        refused,
        [": arguments and environment variables together exceed 2 MiB"]
    );
}

#[test]
fn a_variable_that_is_too_long_is_reported_at_its_value() {
    let mut backing = backing("x", false);
    backing.env = vec![("V".to_owned(), sample_template("a{n}"))];
    let refused = fill(&backing, &json!({"n": "x".repeat(MAX_ARGUMENT_BYTES)})).unwrap_err();
    assert!(refused[0].starts_with("/n: is too long"), "{refused:?}");
}

#[test]
fn a_probe_is_filled_like_its_command() {
    let mut tool = tool_with_backing(Backing::Command(backing("x", false)));
    let input = Input::parse(r#"{"n": 1}"#).unwrap();
    assert!(build_probe(&tool, &input).unwrap().is_none());
    tool.probe = Some(backing("{n}", false));
    let probe = build_probe(&tool, &input).unwrap().unwrap();
    assert_eq!(probe.argv, ["prog", "1"]);
}
