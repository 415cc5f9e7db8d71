//! Arguments, variables, standard input, and the words that people see meanwhile.

use serde_json::Value;

use crate::corpus::hostile;
use crate::run_each;
use crate::support::{Toolq, json_lines};

/// Writes how many arguments it got, each of them, its variable and what it reads, with NUL between.
const DUMP: &str = r#"
tools:
  dump:
    input_schema: {type: object, properties: {x: {type: string}}, required: [x]}
    effect: read
    status: {wait: "about {x}", doing: "with {x}"}
    command:
      argv: [sh, -c, 'printf "%s\0" "$#" "$@" "$VALUE"; cat', --, "{x}", "--flag={x}", "{x}{x}", "$HOME {x} *"]
      env: {VALUE: "<{x}>"}
      stdin: "{x} {{x}"
"#;

/// FAULTS 34, 37, 38, 40, 41: one argument each, nothing run, nothing expanded, nothing split.
#[test]
fn a_value_arrives_as_it_is() {
    let values = hostile();
    let (ran, texts) = run_each(Toolq::new().tools(DUMP), "dump", &values);
    for (x, (text, is_error)) in values.iter().zip(&texts) {
        if x.contains('\0') {
            assert!(*is_error && text.contains("NUL"), "{x:?}: {text}");
            continue;
        }
        let arguments = [
            x.clone(),
            format!("--flag={x}"),
            format!("{x}{x}"),
            format!("$HOME {x} *"),
        ];
        let dump = format!("4\0{}\0<{x}>\0{x} {{x}}", arguments.join("\0"));
        // One line break at the end of an output is taken off.
        assert_eq!(text, dump.strip_suffix('\n').unwrap_or(&dump), "{x:?}");
    }
    let started = ran
        .log()
        .iter()
        .filter(|record| record["type"] == "tool_start")
        .count();
    assert_eq!(started, values.iter().filter(|x| !x.contains('\0')).count());
}

/// FAULTS 36: what could be an option is refused where no `--` stands, and nothing starts.
#[test]
fn a_value_is_no_option() {
    let bare = r#"
tools:
  bare:
    input_schema: {type: object, properties: {x: {type: string}}, required: [x]}
    effect: read
    command: {argv: [echo, "{x}"], stdin: none}
"#;
    let values: Vec<String> = hostile()
        .into_iter()
        .filter(|x| !x.contains('\0'))
        .collect();
    let (_, texts) = run_each(Toolq::new().tools(bare), "bare", &values);
    for (x, (text, is_error)) in values.iter().zip(&texts) {
        assert_eq!(*is_error, x.starts_with('-'), "{x:?}: {text}");
    }
}

/// FAULTS 45, 78: people see what it is, and their terminal obeys nothing; programs get it as it is.
#[test]
fn words_for_people_are_escaped() {
    let values: Vec<String> = hostile()
        .into_iter()
        .filter(|x| !x.contains('\0'))
        .collect();
    let (ran, _) = run_each(Toolq::new().tools(DUMP), "dump", &values);
    let shown = |c: char| {
        c == '\n' || !(c.is_control() || "\u{202e}\u{2066}\u{200b}\u{feff}\u{2028}".contains(c))
    };
    assert!(ran.stderr.chars().all(shown), "{:?}", ran.stderr);
    let events = json_lines(&ran.file("events.ndjson").unwrap());
    for (at, x) in values.iter().enumerate() {
        let id = Value::from(format!("toolu_{at}"));
        let told = events
            .iter()
            .find(|event| event["tool_use_id"] == id && event["type"] == "tool_started");
        assert_eq!(told.unwrap()["state"]["tip"], format!("with {x}"));
        assert_eq!(told.unwrap()["state"]["params"]["x"], **x);
    }
}
