//! Builds what a call runs from its tool's templates and its input. A value becomes part of exactly one argument,
//! variable, header, query pair or JSON value. It is never split, never scanned for placeholders, and never put where
//! it could be read as something else. Environment variables aren't resolved here.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use regex::bytes::{Regex, RegexBuilder};
use serde_json::value::{RawValue, to_raw_value};

use crate::check::fill::{
    ProblemCollector, command, fill_template, find_value, problem_at, push_text, value_text,
};
use crate::json::Input;
use crate::template::TemplateTarget;
use crate::text::describe_regex_error;
use crate::types::{
    AgentInvocation, Backing, BodyTemplate, BuiltinTool, CommandBacking, CommandInvocation,
    HostPattern, HttpBacking, HttpInvocation, Invocation, McpBacking, McpInvocation, OutputRequest,
    PartialJson, PartialTemplate, ProblemDetail, RequestBody, Segment, Template, TemplatePart,
    Tool,
};
use crate::url;

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
            Invocation::Http(Box::new(fill_request(http, input, &mut problems)))
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
        Some(template) => problems.record(fill_body(template, input)),
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

// Fills a request: URL, query, headers, body.

fn fill_request(
    http: &HttpBacking,
    input: &Input,
    problems: &mut ProblemCollector,
) -> HttpInvocation {
    let url = match &http.allowed_hosts {
        Some(hosts) => fill_whole_url(&http.url, hosts, input),
        None => fill_url(&http.url, input),
    };
    let url = problems.record(url.map(Some));
    let mut pairs = |templates: &[(String, Template)], target| {
        let mut filled = Vec::new();
        for (name, template) in templates {
            let value = problems.record(fill_template(template, input, target));
            filled.extend(value.map(|value| (name.clone(), value)));
        }
        filled
    };
    let query = pairs(&http.query, TemplateTarget::Text);
    let headers = pairs(&http.headers, TemplateTarget::Header);
    let body = match &http.body {
        RequestBody::Input => Some(PartialJson::Raw(input.share())),
        RequestBody::None => None,
        // In a form that is written as text, a value stays one value.
        RequestBody::Json(BodyTemplate::Template(text)) if http.sends_form() => {
            let filled = fill_template(text, input, TemplateTarget::Url);
            problems.record(filled).map(PartialJson::Text)
        }
        RequestBody::Json(template) => problems.record(fill_body(template, input)),
    };
    HttpInvocation {
        url: url.unwrap_or_default(),
        query,
        headers,
        body,
    }
}

/// Fills a URL that is a single value, and normalizes it.
fn fill_whole_url(
    template: &Template,
    hosts: &[HostPattern],
    input: &Input,
) -> Result<PartialTemplate, ProblemDetail> {
    let path = template.sole_value().unwrap_or_default();
    let value = find_value(input, path, false)?.map(value_text);
    let url = url::parse_allowed_url(&value.unwrap_or_default(), hosts);
    let url = url.map_err(|why| problem_at(path, why))?;
    Ok(PartialTemplate(vec![Segment::Text(url.into())]))
}

/// Fills a URL, percent-encoding every value. A missing optional value adds nothing. In the path, a value may neither
/// be nor complete a segment that is empty, `.` or `..`, because those lead to another resource. For servers that decode
/// `%2F` before they look for segments, it can't have a part `..` either.
fn fill_url(template: &Template, input: &Input) -> Result<PartialTemplate, ProblemDetail> {
    let mut partial = PartialTemplate::default();
    let mut values = Vec::new();
    for part in &template.parts {
        match part {
            TemplatePart::Text(text) => push_text(&mut partial, text),
            TemplatePart::Env { .. } => partial.0.extend(part.as_segment()),
            TemplatePart::Value { path, optional, .. } => {
                let start = partial.to_string().len();
                if let Some(raw) = find_value(input, path, *optional)? {
                    let value = value_text(raw);
                    if is_in_path(&partial.to_string()) && has_parent_part(&value) {
                        return Err(problem_at(
                            path,
                            "must not have a part `..`, because it is part of a URL's path",
                        ));
                    }
                    push_text(
                        &mut partial,
                        &TemplateTarget::Url.encode(value).unwrap_or_default(),
                    );
                }
                values.push((path, start));
            }
        }
    }
    let whole = partial.to_string();
    match values
        .into_iter()
        .find(|(_, start)| is_empty_or_dot_segment(&whole, *start))
    {
        Some((path, _)) => Err(problem_at(
            path,
            "must not be empty, `.` or `..`, because it is part of a URL's path",
        )),
        None => Ok(partial),
    }
}

/// Whether what follows this text is a part of the path of a URL.
fn is_in_path(before: &str) -> bool {
    !before.contains(['?', '#'])
}

/// Whether one of the parts between slashes is `..`, besides the whole.
fn has_parent_part(value: &str) -> bool {
    value.contains(['/', '\\']) && value.split(['/', '\\']).any(|part| part == "..")
}

/// Returns whether the path segment of `url` around `offset` is empty or a dot segment, which clients resolve away.
fn is_empty_or_dot_segment(url: &str, offset: usize) -> bool {
    let (before, after) = url.split_at(offset);
    if !is_in_path(before) {
        return false;
    }
    let head = before.rsplit('/').next().unwrap_or_default();
    let tail = after.split(['/', '?', '#']).next().unwrap_or_default();
    let segment = format!("{head}{tail}")
        .to_ascii_lowercase()
        .replace("%2e", ".");
    match segment.split_once("${") {
        None => matches!(segment.as_str(), "" | "." | ".."),
        // A variable may be empty, or a dot itself.
        Some((before, rest)) => {
            let after = rest.split_once('}').map_or("", |(_, after)| after);
            matches!(format!("{before}{after}").as_str(), "." | "..")
        }
    }
}

// Fills a JSON body. Values are inserted into the tree, never into its text.

/// Returns the filled body; `None` if it is omitted.
pub(crate) fn fill_body(
    template: &BodyTemplate,
    input: &Input,
) -> Result<Option<PartialJson>, ProblemDetail> {
    Ok(Some(match template {
        BodyTemplate::Literal(value) => match to_raw_value(value) {
            Ok(raw) => PartialJson::Raw(raw.into()),
            Err(_) => return Ok(None),
        },
        BodyTemplate::Template(template) => return fill_string(template, input),
        BodyTemplate::Array(items) => {
            let items = items
                .iter()
                .filter_map(|item| fill_body(item, input).transpose());
            PartialJson::Array(items.collect::<Result<_, _>>()?)
        }
        BodyTemplate::Object(pairs) => {
            let pairs = pairs.iter().filter_map(|(key, value)| {
                let value = fill_body(value, input).transpose()?;
                Some(value.map(|value| (key.clone(), value)))
            });
            PartialJson::Object(pairs.collect::<Result<_, _>>()?)
        }
    }))
}

/// Fills a string. A template that is a single placeholder keeps the value's type and digits; any other becomes a
/// string.
fn fill_string(template: &Template, input: &Input) -> Result<Option<PartialJson>, ProblemDetail> {
    if let [TemplatePart::Value { path, optional, .. }] = template.parts.as_slice() {
        let value = match input.value_at(path) {
            Some(null) if null.is_null() => Some(null),
            _ => find_value(input, path, *optional)?,
        };
        let raw = value.and_then(|value| RawValue::from_string(value.get().to_owned()).ok());
        return Ok(raw.map(|raw| PartialJson::Raw(raw.into())));
    }
    let text: Option<PartialTemplate> = fill_template(template, input, TemplateTarget::Text)?;
    Ok(text.map(PartialJson::Text))
}
