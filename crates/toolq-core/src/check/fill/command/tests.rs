//! Arguments that are refused or changed because of what a program could take them for.

use serde_json::{Value, json};

use super::*;

use crate::check::fill::invocation::build_probe;
use crate::testing::{sample_template, tool_with_backing};
use crate::types::{Backing, CommandLimits, Leftovers, StderrUse};

fn backing(argument: &str) -> CommandBacking {
    CommandBacking {
        program: "prog".to_owned(),
        arguments: vec![sample_template(argument)],
        dashes: Vec::new(),
        stdin: StdinSource::None,
        env: Vec::new(),
        pass_env: Vec::new(),
        cwd: "/".into(),
        success_exit: vec![0],
        stderr: StderrUse::default(),
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

/// A program like curl opens what follows `@`. With `./` before it, it wouldn't be that anymore.
#[test]
fn a_path_behind_other_text_keeps_that_text_first() {
    let input = json!({"p": "A=1"});
    assert_eq!(fill(&backing("@{p}"), &input).unwrap(), ["@A=1"]);
    assert_eq!(fill(&backing("=@{p}"), &input).unwrap(), ["=@A=1"]);
    assert_eq!(fill(&backing("={p}"), &input).unwrap(), ["=./A=1"]);
}

#[test]
fn only_the_items_of_a_list_of_paths_become_paths() {
    let input = json!({"paths": ["A=1"], "words": ["A=1"]});
    assert_eq!(fill(&backing("{paths...}"), &input).unwrap(), ["./A=1"]);
    assert_eq!(fill(&backing("{words...}"), &input).unwrap(), ["A=1"]);
    let nul = fill(&backing("{words...}"), &json!({"words": ["a", "b\0"]}));
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
        fill(&backing("{words...}"), &json!({"words": words}))
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
    let mut backing = backing("x");
    backing.env = vec![("V".to_owned(), sample_template("a{n}"))];
    let refused = fill(&backing, &json!({"n": "x".repeat(MAX_ARGUMENT_BYTES)})).unwrap_err();
    assert!(refused[0].starts_with("/n: is too long"), "{refused:?}");
}

#[test]
fn a_probe_is_filled_like_its_command() {
    let mut tool = tool_with_backing(Backing::Command(backing("x")));
    let input = Input::parse(r#"{"n": 1}"#).unwrap();
    assert!(build_probe(&tool, &input).unwrap().is_none());
    tool.probe = Some(backing("{n}"));
    let probe = build_probe(&tool, &input).unwrap().unwrap();
    assert_eq!(probe.argv, ["prog", "1"]);
}
