//! What a program is given: arguments, variables, standard input.

use serde_json::value::RawValue;

use crate::check::fill::values::{Problems, detail, draft, found, plain, text};
use crate::json::{Input, Json};
use crate::template::Sink;
use crate::types::{
    Argument, CommandBacking, CommandInvocation, Detail, Draft, Part, Piece, Stdin, StdinDraft,
    Template,
};

/// Bytes that one argument or variable may have with its terminator: `MAX_ARG_STRLEN` of Linux.
const MAX_STRING: usize = 131_072;
/// Bytes that arguments and variables may have together: a quarter of the usual stack of 8 MiB.
const MAX_TOGETHER: usize = 2 << 20;
/// Bytes of each string's pointer.
const POINTER: usize = 8;

pub(crate) fn filled(
    command: &CommandBacking,
    input: &Input,
    problems: &mut Problems,
) -> CommandInvocation {
    let mut argv = vec![command.program.clone()];
    for argument in &command.arguments {
        argv.extend(
            problems
                .keep(arguments(argument, input))
                .unwrap_or_default(),
        );
    }
    let mut env = Vec::new();
    for (name, template) in &command.env {
        let value = problems.keep(variable(name, template, input));
        env.extend(value.map(|value| (name.clone(), value)));
    }
    let stdin = match &command.stdin {
        Stdin::Input => StdinDraft::Input,
        Stdin::None => StdinDraft::None,
        Stdin::Template(template) => problems
            .keep(plain(template, input, Sink::Text))
            .map_or(StdinDraft::None, StdinDraft::Text),
    };
    let texts = env.iter().flat_map(|(_, Draft(pieces))| pieces).map(length);
    let together: usize = argv
        .iter()
        .map(|text| text.len() + 1 + POINTER)
        .chain(texts)
        .sum();
    if together > MAX_TOGETHER {
        problems.0.push(detail(
            &[],
            "is too large for arguments and variables together (2 MiB)",
        ));
    }
    CommandInvocation { argv, stdin, env }
}

/// The arguments that one element of `argv` becomes: one, or as many as an array has; none where it is left out.
fn arguments(argument: &Argument, input: &Input) -> Result<Option<Vec<String>>, Detail> {
    let template = &argument.template;
    if let [
        Part::Value {
            path,
            optional,
            splat: true,
        },
    ] = template.parts.as_slice()
    {
        let Some(array) = found(input, path, *optional)? else {
            return Ok(None);
        };
        return Ok(Some(spread(argument, path, array)?));
    }
    let Some(text) = plain(template, input, Sink::Argument)? else {
        return Ok(None);
    };
    if let Some(path) = leading_string(template, input) {
        checked_option(argument, path, &text)?;
    }
    checked_size(template, &text)?;
    Ok(Some(vec![text]))
}

/// An argument for each item.
fn spread(argument: &Argument, path: &[String], array: &RawValue) -> Result<Vec<String>, Detail> {
    let items = Json::from(array).list();
    let items = items.ok_or_else(|| detail(path, "must be an array"))?;
    let mut each = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        let place = [path, &[index.to_string()]].concat();
        let value = Sink::Argument
            .admitted(text(item))
            .map_err(|cause| detail(&place, cause))?;
        if item.get().starts_with('"') {
            checked_option(argument, &place, &value)?;
        }
        checked_length(&place, value.len())?;
        each.push(value);
    }
    Ok(each)
}

/// The path of the string with which the argument begins, where it begins with one of the input and not with the
/// author's own text.
fn leading_string<'t>(template: &'t Template, input: &Input) -> Option<&'t [String]> {
    template
        .parts
        .iter()
        .map_while(|part| match part {
            Part::Value { path, .. } => Some(path.as_slice()),
            _ => None,
        })
        .find(|path| input.at(path).is_some_and(|raw| raw.get() != "\"\""))
        .filter(|path| input.at(path).is_some_and(|raw| raw.get().starts_with('"')))
}

/// A program could take it for an option.
fn checked_option(argument: &Argument, path: &[String], text: &str) -> Result<(), Detail> {
    if text.starts_with('-') && !argument.after_dashes {
        return Err(detail(
            path,
            "must not begin with `-`, which the program would take for an option",
        ));
    }
    Ok(())
}

fn checked_size(template: &Template, text: &str) -> Result<(), Detail> {
    let largest = template.parts.iter().find_map(|part| match part {
        Part::Value { path, .. } => Some(path.as_slice()),
        _ => None,
    });
    checked_length(largest.unwrap_or_default(), text.len())
}

fn checked_length(path: &[String], bytes: usize) -> Result<(), Detail> {
    if bytes < MAX_STRING {
        return Ok(());
    }
    let message = format!(
        "is too long for an argument or variable ({bytes} bytes; {} is the most); the tool would have to read it from stdin",
        MAX_STRING - 1
    );
    Err(detail(path, message))
}

fn variable(name: &str, template: &Template, input: &Input) -> Result<Option<Draft>, Detail> {
    let Some(value) = draft(template, input, Sink::Variable)? else {
        return Ok(None);
    };
    let path = template.parts.iter().find_map(|part| match part {
        Part::Value { path, .. } => Some(path.as_slice()),
        _ => None,
    });
    let bytes = name.len() + 1 + value.0.iter().map(length).sum::<usize>();
    checked_length(path.unwrap_or_default(), bytes)?;
    Ok(Some(value))
}

fn length(piece: &Piece) -> usize {
    match piece {
        Piece::Text(text) => text.len(),
        Piece::Env { .. } => 0,
    }
}
