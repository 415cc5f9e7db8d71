//! The least that an MCP client can do: it calls a tool with each line of a file, a few calls at a time, and prints the
//! answers as they come.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Result;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Calls `tool` of the server `command`.
///
/// # Errors
/// The server can't be started, ends early, or fails.
pub fn run(in_flight: usize, tool: &str, lines: &Path, command: &[OsString]) -> Result<()> {
    let (program, arguments) = command.split_first().ok_or("no command given")?;
    let mut server = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut requests = server.stdin.take().ok_or("the server has no stdin")?;
    let answers = server.stdout.take().ok_or("the server has no stdout")?;
    let mut answers = BufReader::with_capacity(1 << 16, answers);
    let mut stdout = io::stdout().lock();
    let mut receive = || -> Result<()> {
        let mut answer = Vec::new();
        if answers.read_until(b'\n', &mut answer)? == 0 {
            return Err("the server ended early".into());
        }
        Ok(stdout.write_all(&answer)?)
    };

    writeln!(requests, "{INITIALIZE}")?;
    receive()?;
    writeln!(requests, "{INITIALIZED}")?;
    let inputs = fs::read_to_string(lines)?;
    let mut open = 0;
    for (number, input) in inputs.lines().enumerate() {
        if open == in_flight {
            receive()?;
            open -= 1;
        }
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"{tool}","arguments":{input}}}}}"#
        );
        requests.write_all(format!("{request}\n").as_bytes())?;
        open += 1;
    }
    for _ in 0..open {
        receive()?;
    }
    drop(requests);
    let status = server.wait()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("the server ended with {status}").into())
    }
}
