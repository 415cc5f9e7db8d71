//! Builds what a call runs from its tool's templates and its input. A value becomes part of exactly one argument,
//! variable, header, query pair or JSON value. It is never split, never scanned for placeholders, and never put where
//! it could be read as something else. Environment variables aren't resolved here.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use regex::bytes::{Regex, RegexBuilder};

use crate::check::fill::template_values::{ProblemCollector, fill_template, value_text};
use crate::check::fill::{command, request};
use crate::json::Input;
use crate::template::TemplateTarget;
use crate::text::describe_regex_error;
use crate::types::{
    AgentInvocation, Backing, BuiltinTool, CommandBacking, CommandInvocation, Invocation,
    McpBacking, McpInvocation, OutputRequest, PartialJson, PartialTemplate, ProblemDetail, Segment,
    Tool,
};

/// Builds what a call of `tool` runs; `None` if the tool has no backing.
///
/// # Errors
/// Every value that is missing, or isn't allowed where the templates put it.
pub(crate) fn build_invocation(
    tool: &Tool,
    input: &Input,
) -> Result<Option<Invocation>, Vec<ProblemDetail>> {
    let mut problems = ProblemCollector::default();
    let invocation = match &tool.backing {
        Some(Backing::Command(command)) => Invocation::Command(command::fill_command(
            command,
            &tool.paths,
            input,
            &mut problems,
        )),
        Some(Backing::Http(http)) => {
            Invocation::Http(Box::new(request::fill_request(http, input, &mut problems)))
        }
        Some(Backing::Agent(agent)) => Invocation::Agent(AgentInvocation {
            prompt: agent.prompt.as_ref().and_then(|prompt| {
                let filled = fill_template(prompt, input, TemplateTarget::Text);
                problems.record(filled.map(|filled| Some(filled.unwrap_or_default())))
            }),
        }),
        Some(Backing::Mcp(mcp)) => Invocation::Mcp(Box::new(fill_mcp(mcp, input, &mut problems))),
        Some(Backing::Builtin(BuiltinTool::AttemptCompletion)) => {
            Invocation::Completion(builtin_argument(input, "result"))
        }
        Some(Backing::Builtin(BuiltinTool::NewTask(_))) => Invocation::Agent(AgentInvocation {
            prompt: Some(PartialTemplate(vec![Segment::Text(builtin_argument(
                input, "task",
            ))])),
        }),
        Some(Backing::Builtin(BuiltinTool::ReadOutput)) => {
            let request = read_request(input);
            Invocation::ReadOutput(Box::new(request.map_err(|problem| vec![problem])?))
        }
        Some(Backing::Host) => Invocation::Host,
        None => return Ok(None),
    };
    problems.into_result(Some(invocation))
}

/// Builds the command that the `probe` of `tool` runs; `None` if the tool has no probe.
///
/// # Errors
/// As for [`build_invocation`].
pub(crate) fn build_probe(
    tool: &Tool,
    input: &Input,
) -> Result<Option<CommandInvocation>, Vec<ProblemDetail>> {
    let Some(probe) = &tool.probe else {
        return Ok(None);
    };
    let mut problems = ProblemCollector::default();
    let filled = command::fill_command(probe, &tool.paths, input, &mut problems);
    problems.into_result(Some(filled))
}

/// Builds the command that starts the program of a server. It holds no values from an input.
pub fn build_server_command(program: &CommandBacking) -> CommandInvocation {
    let no_input = Input::empty();
    command::fill_command(program, &[], &no_input, &mut ProblemCollector::default())
}

fn fill_mcp(mcp: &McpBacking, input: &Input, problems: &mut ProblemCollector) -> McpInvocation {
    let arguments = match &mcp.arguments {
        Some(template) => problems.record(request::fill_body(template, input)),
        None => Some(PartialJson::Raw(input.share())),
    };
    McpInvocation {
        server: mcp.server.name.clone(),
        tool: Arc::clone(&mcp.tool),
        arguments: arguments.unwrap_or_else(|| PartialJson::Object(Vec::new())),
    }
}

/// Returns a value that the schema of a built-in tool requires.
fn builtin_argument(input: &Input, name: &str) -> String {
    let value = input.value_at(&[name.to_owned()]);
    value.map(value_text).unwrap_or_default()
}

// Reads the input of `read_output`.

/// Maximum size of a compiled pattern in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// Returns what a call asks for.
///
/// # Errors
/// The pattern isn't a regular expression that can be matched in linear time.
fn read_request(input: &Input) -> Result<OutputRequest, ProblemDetail> {
    let value = input.to_value();
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    // The schema takes any number without a fraction, such as `1e3`.
    let number = |name: &str| {
        let number = &value[name];
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the schema refuses negative numbers, and larger ones are beyond every output"
        )]
        number
            .as_u64()
            .or(number.as_f64().map(|number| number as u64))
    };
    let pattern = text("pattern").map(|pattern| compile_pattern(&pattern));
    let pattern = pattern.transpose().map_err(|why| {
        let message = format!("isn't a regular expression: {why}");
        ProblemDetail::new("/pattern", message)
    })?;
    Ok(OutputRequest {
        id: text("id").unwrap_or_default(),
        offset: number("offset").unwrap_or_default(),
        limit: number("limit"),
        pattern,
    })
}

/// Compiles a pattern in which `^` and `$` match at the ends of lines.
fn compile_pattern(pattern: &str) -> Result<Regex, String> {
    let compiled = RegexBuilder::new(pattern)
        .multi_line(true)
        .crlf(true)
        .size_limit(MAX_PATTERN_BYTES)
        .build();
    compiled.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
        error => describe_regex_error(&error),
    })
}
