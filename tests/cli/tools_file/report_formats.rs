//! `toolq check --format`: the same problems for other programs.

use serde_json::Value;

use crate::support::{CliOutput, CliSandbox};

/// An error in tools.yaml, and one with a warning in a file that it includes.
fn check(format: &str) -> CliOutput {
    let tools = "version: 1\ninclude: [more.yaml]\ntools:\n  a: {input_schema: {type: object}, effect: reads}\n";
    let more = "tools:\n  b:\n    input_schema: {type: object}\n    timout: 3s\n";
    CliSandbox::new()
        .tools(tools)
        .file("more.yaml", more)
        .run(&["check", "--format", format])
        .assert_exit(1)
}

#[test]
fn json_has_each_problem_with_its_place() {
    let report = check("json").json();
    let places: Vec<(&str, u64, u64)> = report["problems"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|problem| problem["severity"] == "error")
        .map(|problem| {
            let number = |key: &str| problem[key].as_u64().unwrap();
            (
                problem["file"].as_str().unwrap(),
                number("line"),
                number("column"),
            )
        })
        .collect();
    assert_eq!(places, [("tools.yaml", 4, 45), ("more.yaml", 4, 5)]);
    assert_eq!(report["errors"], 2);
}

#[test]
fn github_gets_a_line_for_each_problem() {
    let ran = check("github");
    let errors: Vec<&str> = ran
        .stdout
        .lines()
        .filter(|line| line.starts_with("::error "))
        .collect();
    assert_eq!(errors.len(), 2, "{}", ran.stdout);
    assert!(
        errors[1].starts_with("::error file=more.yaml,line=4,col=5,"),
        "{}",
        errors[1]
    );
    assert!(
        ran.stdout.lines().all(|line| line.starts_with("::")),
        "{}",
        ran.stdout
    );
}

#[test]
fn sarif_has_what_the_specification_requires() {
    let log = check("sarif").json();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    assert!(run["tool"]["driver"]["name"].is_string());
    let results = run["results"].as_array().unwrap();
    let files: Vec<&Value> = results
        .iter()
        .filter(|result| result["level"] == "error")
        .map(|result| &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])
        .collect();
    assert_eq!(files, ["tools.yaml", "more.yaml"]);
    assert!(
        results
            .iter()
            .all(|result| result["message"]["text"].is_string())
    );
}

#[test]
fn a_file_without_problems_has_an_empty_report() {
    let tools = "version: 1\ntools:\n  a: {description: A., input_schema: {type: object}, effect: read, command: [echo, a]}\n";
    let check = |format| {
        CliSandbox::new()
            .tools(tools)
            .run(&["check", "--format", format])
            .assert_exit(0)
    };
    assert_eq!(check("github").stdout, "");
    assert_eq!(check("json").json()["problems"], Value::Array(Vec::new()));
}

#[test]
fn a_file_that_cannot_be_read_is_the_only_problem_of_the_report() {
    for (path, why) in [
        ("missing.yaml", "missing.yaml can't be read: No such file"),
        (".", ". can't be read: Is a directory"),
        ("latin1.yaml", "latin1.yaml: line 1 isn't valid UTF-8"),
    ] {
        let check = |format| {
            CliSandbox::new()
                .file("latin1.yaml", b"# \xe9\n")
                .run(&["check", "-c", path, "--format", format])
                .assert_exit(2)
        };
        let report = check("json").json();
        assert_eq!(
            (&report["errors"], &report["warnings"]),
            (&1.into(), &0.into())
        );
        let problem = &report["problems"][0];
        let message = problem["message"].as_str().unwrap();
        assert!(message.starts_with(why), "{message}");
        let text = check("text").stderr;
        assert!(text.contains(" hint: "), "{text}");
        assert_eq!(
            (&problem["file"], &problem["line"]),
            (&path.into(), &1.into())
        );
        assert!(check("github").stdout.starts_with("::error file="));
        assert_eq!(
            check("sarif").json()["runs"][0]["results"][0]["level"],
            "error"
        );
        assert_eq!(check("text").stdout, "");
    }
}

/// YAML ends lines with it, too.
#[test]
fn a_lone_carriage_return_begins_a_line() {
    let tools =
        "version: 1\rtools:\r\n  a: {input_schema: {type: object}, effect: reads}\r  a: {}\n";
    let report = CliSandbox::new()
        .tools(tools)
        .run(&["check", "--format", "json"])
        .assert_exit(1)
        .json();
    let problems = report["problems"].as_array().unwrap();
    let repeated = |problem: &&Value| problem["message"] == "duplicate key `a`";
    let problem = problems.iter().find(repeated).unwrap();
    assert_eq!(
        (&problem["line"], &problem["column"]),
        (&4.into(), &3.into())
    );
    let hint = problem["hint"].as_str().unwrap();
    assert!(hint.starts_with("the first one is on line 3"), "{hint}");
}
