//! The call of `toolq agent`: which agent, with which input.

use std::io::{self, IsTerminal as _, Read as _};
use std::sync::Arc;

use crate::output::CommandError;
use toolq_core::json::{Input, MAX_INPUT_BYTES};
use toolq_core::text::suggest_name;
use toolq_core::types::{Backing, Call, CheckedCall, Tool, ToolsConfig, Verdict};

/// Returns the call of `agent` with the input on stdin: a JSON object, or the text of its only string.
///
/// # Errors
/// stdin is a terminal, or can't be read, or isn't an input for this agent.
pub(crate) fn read_call(agent: &Tool) -> Result<Call, CommandError> {
    let name = agent.name.as_str();
    Ok(Call {
        turn: 0,
        position: 0,
        id: format!("toolq_{name}"),
        name: name.to_owned(),
        input: Ok(read_input(agent)?),
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
fn read_input(agent: &Tool) -> Result<Input, CommandError> {
    let example = example(agent);
    if io::stdin().is_terminal() {
        let message = "no input: stdin is a terminal";
        return Err(CommandError::usage(message).with_hint(example));
    }
    let mut text = String::new();
    io::stdin()
        .take(MAX_INPUT_BYTES as u64 + 1)
        .read_to_string(&mut text)
        .map_err(|error| CommandError::usage(format!("stdin can't be read: {error}")))?;
    let is_object = text.trim_start().starts_with('{');
    let text = match only_string(agent) {
        Some(property) if !is_object && !text.trim().is_empty() => {
            serde_json::json!({ property: text.trim_end() }).to_string()
        }
        None if !is_object && !text.trim().is_empty() => {
            let name = &agent.name;
            let message = format!("the input of {name} is a JSON object, and this is none");
            return Err(CommandError::usage(message).with_hint(example));
        }
        _ => text,
    };
    Input::parse(&text).map_err(|fault| CommandError::usage(fault).with_hint(example))
}

/// Returns the property that a plain text stands for: the only required one, if it is a string, or else the only one.
fn only_string(agent: &Tool) -> Option<&str> {
    let schema = agent.input_schema();
    let properties = schema["properties"].as_object()?;
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let name = match required {
        [name] => name.as_str()?,
        [] if properties.len() == 1 => properties.keys().next()?,
        _ => return None,
    };
    (properties.get(name)?["type"] == "string").then_some(name)
}

/// Returns an example of a command line with the properties of this agent.
fn example(agent: &Tool) -> String {
    let name = &agent.name;
    if only_string(agent).is_some() {
        return format!("pipe it in: `echo 'TEXT' | toolq agent {name}`");
    }
    let schema = agent.input_schema();
    let required = schema["required"].as_array().into_iter().flatten();
    let required = required.filter_map(|property| property.as_str());
    let members: Vec<String> = required
        .map(|property| {
            let is_string = schema["properties"][property]["type"] == "string";
            format!("\"{property}\":{}", if is_string { "\"…\"" } else { "…" })
        })
        .collect();
    let members = members.join(",");
    format!("pipe it in: `echo '{{{members}}}' | toolq agent {name}`")
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
