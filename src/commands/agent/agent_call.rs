//! The call of `toolq agent`: which agent, with which input.

use std::io::{self, IsTerminal as _, Read as _};
use std::sync::Arc;

use crate::output::CommandError;
use toolq_core::json::{Input, MAX_INPUT_BYTES};
use toolq_core::text::suggest_name;
use toolq_core::types::{Backing, Call, CheckedCall, Tool, ToolsConfig, Verdict};

/// Returns the call of the agent `name` with the input on stdin.
///
/// # Errors
/// stdin is a terminal, or can't be read, or has no JSON object.
pub(crate) fn read_call(name: &str) -> Result<Call, CommandError> {
    Ok(Call {
        turn: 0,
        position: 0,
        id: format!("toolq_{name}"),
        name: name.to_owned(),
        input: Ok(read_input()?),
        parent: None,
    })
}

/// Finds the agent with this name.
pub(crate) fn find_agent<'t>(
    tools: &'t ToolsConfig,
    name: &str,
) -> Result<&'t Arc<Tool>, CommandError> {
    let is_agent = |tool: &&Arc<Tool>| matches!(tool.backing, Some(Backing::Agent(_)));
    let agents = tools.tools.iter().filter(is_agent);
    let known: Vec<&str> = agents.map(|tool| tool.name.as_str()).collect();
    match tools.get(name) {
        Some(tool) if known.contains(&name) => Ok(tool),
        other => {
            let message = match other {
                Some(_) => format!("{name} is a tool, but not an agent"),
                None => format!("no agent is called {name}"),
            };
            let hint = match suggest_name(name, known.iter().copied()) {
                Some(near) => format!("did you mean {near}?"),
                None if known.is_empty() => "tools.yaml has no tool with an `agent`".to_owned(),
                None => format!("known: {}", known.join(", ")),
            };
            Err(CommandError::usage(message).with_hint(hint))
        }
    }
}

/// Reads the input from stdin.
fn read_input() -> Result<Input, CommandError> {
    let example = "pipe it in: `echo '{\"query\":\"…\"}' | toolq agent NAME`";
    if io::stdin().is_terminal() {
        let message = "no input: stdin is a terminal";
        return Err(CommandError::usage(message).with_hint(example));
    }
    let mut text = String::new();
    io::stdin()
        .take(MAX_INPUT_BYTES as u64 + 1)
        .read_to_string(&mut text)
        .map_err(|error| CommandError::usage(format!("stdin can't be read: {error}")))?;
    Input::parse(&text).map_err(|fault| CommandError::usage(fault).with_hint(example))
}

/// Returns an error with every problem of the input if the call is rejected.
pub(crate) fn check_accepted(checked: &CheckedCall) -> Result<(), CommandError> {
    let Verdict::Rejected(rejection) = &checked.verdict else {
        return Ok(());
    };
    let problems = rejection
        .details
        .iter()
        .map(|detail| match detail.path.as_str() {
            "" => detail.message.clone(),
            path => format!("{path}: {}", detail.message),
        });
    let problems: Vec<String> = problems.collect();
    Err(CommandError::usage(format!(
        "invalid input for {}: {}",
        checked.call.name,
        problems.join("; ")
    )))
}
