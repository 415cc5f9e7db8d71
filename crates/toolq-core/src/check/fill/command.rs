//! Fills a command: arguments, environment variables, standard input.

use serde_json::value::RawValue;

use crate::check::fill::template_values::{
    ProblemCollector, fill_plain_template, fill_template, find_value, problem_at, value_text,
};
use crate::json::{Input, JsonText};
use crate::template::TemplateTarget;
use crate::types::{
    ArgumentTemplate, CommandBacking, CommandInvocation, PartialTemplate, ProblemDetail, Segment,
    StdinContent, StdinSource, Template, TemplatePart,
};

/// Maximum length of one argument or variable in bytes, including the terminator: `MAX_ARG_STRLEN` on Linux.
const MAX_ARGUMENT_BYTES: usize = 131_072;
/// Maximum total length of arguments and variables in bytes: a quarter of the usual 8 MiB stack.
const MAX_TOTAL_BYTES: usize = 2 << 20;
/// Size of the pointer that each argument also needs, in bytes.
const POINTER_BYTES: usize = 8;

pub(crate) fn fill_command(
    command: &CommandBacking,
    input: &Input,
    problems: &mut ProblemCollector,
) -> CommandInvocation {
    let mut argv = vec![command.program.clone()];
    for argument in &command.arguments {
        argv.extend(
            problems
                .record(fill_argument(argument, input))
                .unwrap_or_default(),
        );
    }
    let mut env = Vec::new();
    for (name, template) in &command.env {
        let value = problems.record(fill_variable(name, template, input));
        env.extend(value.map(|value| (name.clone(), value)));
    }
    let stdin = match &command.stdin {
        StdinSource::Input => StdinContent::Input,
        StdinSource::None => StdinContent::None,
        StdinSource::Template(template) => problems
            .record(fill_plain_template(template, input, TemplateTarget::Text))
            .map_or(StdinContent::None, StdinContent::Text),
    };
    let env_bytes = env
        .iter()
        .flat_map(|(_, PartialTemplate(pieces))| pieces)
        .map(segment_bytes);
    let total_bytes: usize = argv
        .iter()
        .map(|text| text.len() + 1 + POINTER_BYTES)
        .chain(env_bytes)
        .sum();
    if total_bytes > MAX_TOTAL_BYTES {
        problems.0.push(problem_at(
            &[],
            "arguments and environment variables together exceed 2 MiB",
        ));
    }
    CommandInvocation { argv, stdin, env }
}

/// Returns the arguments that one element of `argv` becomes: one, or one per item of a spread array. `None` if it is
/// omitted.
fn fill_argument(
    argument: &ArgumentTemplate,
    input: &Input,
) -> Result<Option<Vec<String>>, ProblemDetail> {
    let template = &argument.template;
    if let [
        TemplatePart::Value {
            path,
            optional,
            splat: true,
        },
    ] = template.parts.as_slice()
    {
        let Some(array) = find_value(input, path, *optional)? else {
            return Ok(None);
        };
        return Ok(Some(splat_array(argument, path, array)?));
    }
    let Some(text) = fill_plain_template(template, input, TemplateTarget::Argument)? else {
        return Ok(None);
    };
    if let Some(path) = leading_string_path(template, input) {
        check_not_option(argument, path, &text)?;
    }
    check_argument_length(template, &text)?;
    Ok(Some(vec![text]))
}

/// Returns one argument per item.
fn splat_array(
    argument: &ArgumentTemplate,
    path: &[String],
    array: &RawValue,
) -> Result<Vec<String>, ProblemDetail> {
    let items = JsonText::from(array).elements();
    let items = items.ok_or_else(|| problem_at(path, "must be an array"))?;
    let mut values = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        let item_path = [path, &[index.to_string()]].concat();
        let value = TemplateTarget::Argument
            .encode(value_text(item))
            .map_err(|cause| problem_at(&item_path, cause))?;
        if item.get().starts_with('"') {
            check_not_option(argument, &item_path, &value)?;
        }
        check_length(&item_path, value.len())?;
        values.push(value);
    }
    Ok(values)
}

/// Returns the path of the string that the argument begins with; `None` if it begins with the author's own text or with
/// a value of another type.
fn leading_string_path<'t>(template: &'t Template, input: &Input) -> Option<&'t [String]> {
    template
        .parts
        .iter()
        .map_while(|part| match part {
            TemplatePart::Value { path, .. } => Some(path.as_slice()),
            _ => None,
        })
        .find(|path| input.value_at(path).is_some_and(|raw| raw.get() != "\"\""))
        .filter(|path| {
            input
                .value_at(path)
                .is_some_and(|raw| raw.get().starts_with('"'))
        })
}

/// Refuses an argument that the program could read as an option.
fn check_not_option(
    argument: &ArgumentTemplate,
    path: &[String],
    text: &str,
) -> Result<(), ProblemDetail> {
    if text.starts_with('-') && !argument.after_double_dash {
        return Err(problem_at(
            path,
            "must not start with `-`, or the program would read it as an option",
        ));
    }
    Ok(())
}

fn check_argument_length(template: &Template, text: &str) -> Result<(), ProblemDetail> {
    let path = template.parts.iter().find_map(|part| match part {
        TemplatePart::Value { path, .. } => Some(path.as_slice()),
        _ => None,
    });
    check_length(path.unwrap_or_default(), text.len())
}

fn check_length(path: &[String], bytes: usize) -> Result<(), ProblemDetail> {
    if bytes < MAX_ARGUMENT_BYTES {
        return Ok(());
    }
    let message = format!(
        "is too long for an argument or environment variable ({bytes} bytes, the maximum is {}); the tool would have to read it from stdin",
        MAX_ARGUMENT_BYTES - 1
    );
    Err(problem_at(path, message))
}

fn fill_variable(
    name: &str,
    template: &Template,
    input: &Input,
) -> Result<Option<PartialTemplate>, ProblemDetail> {
    let Some(value) = fill_template(template, input, TemplateTarget::EnvVariable)? else {
        return Ok(None);
    };
    let path = template.parts.iter().find_map(|part| match part {
        TemplatePart::Value { path, .. } => Some(path.as_slice()),
        _ => None,
    });
    let bytes = name.len() + 1 + value.0.iter().map(segment_bytes).sum::<usize>();
    check_length(path.unwrap_or_default(), bytes)?;
    Ok(Some(value))
}

fn segment_bytes(piece: &Segment) -> usize {
    match piece {
        Segment::Text(text) => text.len(),
        Segment::Env { .. } => 0,
    }
}
