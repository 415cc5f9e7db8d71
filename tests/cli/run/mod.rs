//! `toolq run` returns one result per call, in order, even if something fails.

mod calls;
mod inputs;
mod outputs;
mod process_limits;
mod values;

use crate::support::CliSandbox;

const TOOLS: &str = r#"
version: 1
root: .
tools:
  echo:
    description: Print the input.
    input_schema: {type: object}
    effect: read
    command: [cat]
  say:
    description: Print the text.
    input_schema: {type: object, properties: {text: {type: string}}, required: [text], additionalProperties: false}
    effect: read
    command: [sh, -c, 'printf %s "$1"', --, "{text}"]
  touch:
    description: Make a file.
    input_schema: {type: object, properties: {path: {type: string}}, required: [path], additionalProperties: false}
    paths: [path]
    command: [touch, --, "{path}"]
  fail:
    description: Fail.
    input_schema: {type: object, properties: {code: {type: integer}}, required: [code]}
    effect: read
    command: [sh, -c, 'echo out; echo err >&2; exit "$1"', --, "{code}"]
  hang:
    description: Never end.
    input_schema: {type: object}
    effect: read
    timeout: {after: 200ms, grace: 200ms}
    command: {argv: [sh, -c, 'echo begun; while :; do sleep 1; done'], stdin: none}
  declared:
    description: Has no backing.
    input_schema: {type: object}
"#;

fn toolq() -> CliSandbox {
    CliSandbox::new().tools(TOOLS)
}
