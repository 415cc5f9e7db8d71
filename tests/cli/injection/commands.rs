//! Hostile values in arguments, environment variables, stdin and status texts.

use serde_json::Value;

use crate::injection::corpus::hostile_texts;
use crate::injection::run_each;
use crate::support::{CliSandbox, parse_json_lines};

/// A tool that prints the number of its arguments, each argument, its variable and its stdin, separated by NUL.
const DUMP: &str = r#"
tools:
  dump:
    input_schema: {type: object, properties: {x: {type: string}}, required: [x]}
    effect: read
    raw: true
    status: {wait: "about {x}", doing: "with {x}"}
    command:
      argv: [sh, -c, 'printf "%s\0" "$#" "$@" "$VALUE"; cat', --, "<{x}>", "--flag={x}", "=", "{x}", "$HOME {x} *"]
      dashes: [x]
      env: {VALUE: "<{x}>"}
      stdin: "{x} {{x}"
"#;

/// A value becomes exactly one argument, variable or text: it is never executed, expanded or split.
#[test]
fn values_reach_commands_verbatim() {
    let values = hostile_texts();
    let (ran, texts) = run_each(CliSandbox::new().tools(DUMP), "dump", &values);
    for (x, (text, is_error)) in values.iter().zip(&texts) {
        if x.contains('\0') {
            assert!(*is_error && text.contains("NUL"), "{x:?}: {text}");
            continue;
        }
        let arguments = [
            format!("<{x}>"),
            format!("--flag={x}"),
            "=".to_owned(),
            x.clone(),
            format!("$HOME {x} *"),
        ];
        let dump = format!("5\0{}\0<{x}>\0{x} {{x}}", arguments.join("\0"));
        // toolq removes one trailing newline from the output.
        assert_eq!(text, dump.strip_suffix('\n').unwrap_or(&dump), "{x:?}");
    }
    let started = ran
        .log_records()
        .iter()
        .filter(|record| record["type"] == "tool_start")
        .count();
    assert_eq!(started, values.iter().filter(|x| !x.contains('\0')).count());
}

/// A value that begins with `-` is refused as an argument of its own, even after `--`: for many programs, `--` doesn't end
/// the options. All other values are ordinary arguments.
#[test]
fn a_value_that_looks_like_an_option_is_refused() {
    let bare = r#"
tools:
  bare:
    input_schema: {type: object, properties: {x: {type: string}}, required: [x]}
    effect: read
    command: [echo, --, "{x}"]
"#;
    let values: Vec<String> = hostile_texts()
        .into_iter()
        .filter(|x| !x.contains('\0'))
        .collect();
    let (_, texts) = run_each(CliSandbox::new().tools(bare), "bare", &values);
    for (x, (text, is_error)) in values.iter().zip(&texts) {
        assert_eq!(*is_error, x.starts_with('-'), "{x:?}: {text}");
    }
}

/// On the screen control characters are escaped, so that the terminal can't act on them; events have the value verbatim.
#[test]
fn status_text_is_escaped_for_terminals() {
    let values: Vec<String> = hostile_texts()
        .into_iter()
        .filter(|x| !x.contains('\0'))
        .collect();
    let (ran, _) = run_each(CliSandbox::new().tools(DUMP), "dump", &values);
    let is_harmless = |c: char| {
        c == '\n' || !(c.is_control() || "\u{202e}\u{2066}\u{200b}\u{feff}\u{2028}".contains(c))
    };
    assert!(ran.stderr.chars().all(is_harmless), "{:?}", ran.stderr);
    let events = parse_json_lines(&ran.file("events.ndjson").unwrap());
    for (at, x) in values.iter().enumerate() {
        let id = Value::from(format!("toolu_{at}"));
        let started_event = events
            .iter()
            .find(|event| event["tool_use_id"] == id && event["type"] == "tool_started");
        assert_eq!(started_event.unwrap()["state"]["tip"], format!("with {x}"));
        assert_eq!(started_event.unwrap()["state"]["params"]["x"], **x);
    }
}
