use crate::tools_file::load::ParsedToolsFile;
use std::path::Path;

use super::*;
use crate::tools_file::parse_with_host_tools;
use crate::tools_lock::LockUse;
use crate::types::Backing;

const FILE: &str = "version: 1\ntools:\n  look: {input_schema: {type: object}, command: [ls]}\n";

fn parse(file: &str, tools: &str) -> (HostToolDeclarations, ParsedToolsFile) {
    let tools: Box<RawValue> = serde_json::from_str(tools).unwrap();
    let host = HostToolDeclarations::new(&tools).unwrap();
    let dir = Path::new("/work");
    let parsed = parse_with_host_tools((file, Some(&host)), dir, dir, LockUse::None);
    (host, parsed)
}

#[test]
fn host_tools_are_like_those_of_the_file() {
    let tools = r#"{"greet":{"description":"\ud83d\ude00 \u0007\u007f\u0085\u2028\ufeff","backing":"host","effect":"read",
        "input_schema":{"type":"object","properties":{"n":{"type":"integer","maximum":9223372036854775807}}}}}"#;
    for file in [FILE, "version: 1\n"] {
        let (_, parsed) = parse(file, tools);
        assert_eq!(parsed.problems, []);
        let config = parsed.tools.unwrap();
        let greet = config.get("greet").unwrap();
        assert!(matches!(greet.backing, Some(Backing::Host)));
        assert_eq!(
            greet.description,
            "\u{1f600} \u{7}\u{7f}\u{85}\u{2028}\u{feff}"
        );
        let maximum = &greet.input_schema["properties"]["n"]["maximum"];
        assert_eq!(maximum.to_string(), "9223372036854775807");
        assert!(config.own_files.is_empty(), "{:?}", config.own_files);
    }
}

#[test]
fn each_problem_says_where_it_is() {
    let schema = r#""input_schema":{"type":"object"}"#;
    for (tools, at, message) in [
        (
            format!(r#"{{"look":{{"backing":"host",{schema}}}}}"#),
            "look",
            "declared in tools.yaml, too",
        ),
        (format!(r#"{{"a":{{{schema}}}}}"#), "a", "no backing"),
        (
            format!(r#"{{"a":{{"backing":"command",{schema}}}}}"#),
            "a/backing",
            "isn't `host`",
        ),
        (
            format!(r#"{{"a":{{"backing":"host","command":["x"],{schema}}}}}"#),
            "a/command",
            "only have one backing",
        ),
        (
            format!(
                r#"{{"a":{{"backing":"host",{schema}}},"b":{{"backing":"host","timeout":"5x",{schema}}}}}"#
            ),
            "b/timeout",
            "5x",
        ),
        (
            r#"{"a":{"backing":"host"}}"#.to_owned(),
            "a",
            "input_schema",
        ),
        (
            format!(r#"{{"a":{{"backing":"host","shout":1,{schema}}}}}"#),
            "a/shout",
            "shout",
        ),
        (
            r#"{"a":{"backing":"host","input_schema":{"type":"strin"}}}"#.to_owned(),
            "a/input_schema/type",
            "strin",
        ),
        (r#"{"a":{"a":1,"a":2}}"#.to_owned(), "", "duplicate key"),
        (r#"{"a":5}"#.to_owned(), "a", "must be a table"),
    ] {
        let (host, parsed) = parse(FILE, &tools);
        assert!(parsed.tools.is_none(), "{tools}");
        let errors = host.find_errors(&parsed);
        let found: Vec<_> = errors
            .iter()
            .map(|error| (error.at.join("/"), &*error.message))
            .collect();
        assert!(
            found
                .iter()
                .any(|(found_at, found)| found_at == at && found.contains(message)),
            "{tools}: {found:?}"
        );
    }
    for tools in ["[]", "\"x\"", "null"] {
        let tools: Box<RawValue> = serde_json::from_str(tools).unwrap();
        let problem = HostToolDeclarations::new(&tools).unwrap_err();
        assert!(problem.message.contains("not an object"), "{problem:?}");
    }
    let half =
        r#"{"a":{"backing":"host","description":"\ud83d","input_schema":{"type":"object"}}}"#;
    let tools: Box<RawValue> = serde_json::from_str(half).unwrap();
    let problem = HostToolDeclarations::new(&tools).unwrap_err();
    assert!(problem.message.contains("surrogate"), "{problem:?}");
}

/// A file without tools isn't wrong as well.
#[test]
fn what_cannot_be_read_is_a_problem_of_the_host_alone() {
    let deep = format!(
        r#"{{"a":{{"backing":"host","input_schema":{}{{}}{}}}}}"#,
        r#"{"not":"#.repeat(100),
        "}".repeat(100)
    );
    let check = move || {
        for tools in [&*deep, r#"{"a":{"a":1,"a":2}}"#] {
            let (host, parsed) = parse("version: 1\n", tools);
            assert!(parsed.tools.is_none());
            assert_eq!(
                host.find_errors(&parsed).len(),
                parsed.problems.len(),
                "{:?}",
                parsed.problems
            );
        }
    };
    // As much as a main thread has: an unoptimized build takes much of it for each level.
    let thread = std::thread::Builder::new().stack_size(8 << 20);
    thread.spawn(check).unwrap().join().unwrap();
}

#[test]
fn only_a_host_process_announces_host_tools() {
    let file = "tools: {a: {input_schema: {type: object}, backing: host}}";
    let dir = Path::new("/work");
    let parsed = parse_with_host_tools((file, None), dir, dir, LockUse::None);
    let messages: Vec<_> = parsed
        .problems
        .iter()
        .map(|problem| &*problem.message)
        .collect();
    assert_eq!(
        messages,
        ["`backing` is only for the tools that a host process announces"]
    );
}
