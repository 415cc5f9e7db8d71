//! Fills a command: arguments, environment variables, standard input.

#[cfg(test)]
mod tests;

use crate::check::fill::path_texts::{anchor_path, anchored_path_start};
use crate::check::fill::{
    ProblemCollector, fill_plain_template, fill_template, find_value, problem_at, value_text,
};
use crate::json::{Input, JsonText};
use crate::template::TemplateTarget;
use crate::types::{
    CommandBacking, CommandInvocation, PartialTemplate, ProblemDetail, Sandbox, SandboxEntry,
    SandboxInvocation, SandboxPlace, Segment, StdinContent, StdinSource, Template, TemplatePart,
};

/// Maximum length of one argument or variable in bytes, including the terminator: `MAX_ARG_STRLEN` on Linux.
const MAX_ARGUMENT_BYTES: usize = 131_072;
/// Maximum total length of arguments and variables in bytes: a quarter of the usual 8 MiB stack.
const MAX_TOTAL_BYTES: usize = 2 << 20;
/// Size of the pointer that each argument also needs, in bytes.
const POINTER_BYTES: usize = 8;

/// Fills `command`. The values named in `paths` are handed over so that no program takes them for anything else.
pub(crate) fn fill_command(
    command: &CommandBacking,
    paths: &[Vec<String>],
    input: &Input,
    problems: &mut ProblemCollector,
) -> CommandInvocation {
    let filler = CommandFiller {
        dashes: &command.dashes,
        paths,
        input,
    };
    // Most arguments stay one argument.
    let mut argv = Vec::with_capacity(1 + command.arguments.len());
    argv.push(command.program.clone());
    for argument in &command.arguments {
        let arguments = problems.record(filler.fill_argument(argument));
        argv.extend(arguments.into_iter().flatten());
    }
    if let Some(wrapper) = &command.wrapper {
        argv.splice(0..0, wrapper.argv.iter().cloned());
    }
    let mut env = Vec::new();
    for (name, template) in &command.env {
        let value = problems.record(filler.fill_variable(name, template));
        env.extend(value.map(|value| (name.clone(), value)));
    }
    let stdin = match &command.stdin {
        StdinSource::Input => StdinContent::Input,
        StdinSource::None => StdinContent::None,
        StdinSource::Template(template) => problems
            .record(fill_plain_template(template, input, TemplateTarget::Text))
            .map_or(StdinContent::None, |text| StdinContent::Text(text.into())),
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
    let sandbox = command.sandbox.as_ref();
    let sandbox = sandbox.map(|sandbox| Box::new(fill_sandbox(sandbox, input, problems)));
    CommandInvocation {
        argv: argv.iter().collect(),
        stdin,
        env: env.into(),
        sandbox,
    }
}

/// What the arguments and variables of one call are filled from.
struct CommandFiller<'a> {
    dashes: &'a [Vec<String>],
    paths: &'a [Vec<String>],
    input: &'a Input,
}

impl CommandFiller<'_> {
    /// Returns the arguments that one element of `argv` becomes: one, or one per item of a spread array. `None` if it
    /// is omitted.
    fn fill_argument(&self, template: &Template) -> Result<Option<Vec<String>>, ProblemDetail> {
        if let Some((path, optional)) = template.sole_splat() {
            let array = find_value(self.input, path, optional)?;
            return array.map(|array| self.splat_array(path, array)).transpose();
        }
        let filled = fill_plain_template(template, self.input, TemplateTarget::Argument)?;
        let Some(mut text) = filled else {
            return Ok(None);
        };
        if let Some(start) = anchored_path_start(template, self.paths, self.input) {
            let anchored = anchor_path(&text[start..]).into_owned();
            text.replace_range(start.., &anchored);
        }
        if let Some(path) = self.leading_value(template) {
            self.check_not_option(path, path, &text)?;
        }
        check_argument_length(template, &text)?;
        Ok(Some(vec![text]))
    }

    /// Returns one argument per item.
    fn splat_array(
        &self,
        path: &[String],
        array: JsonText<'_>,
    ) -> Result<Vec<String>, ProblemDetail> {
        let items = array
            .elements()
            .ok_or_else(|| problem_at(path, "must be an array"))?;
        let are_paths = self.paths.iter().any(|declared| declared == path);
        let mut values = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            let item_path = [path, &[index.to_string()]].concat();
            let mut value = TemplateTarget::Argument
                .encode(value_text(item))
                .map_err(|cause| problem_at(&item_path, cause))?;
            if are_paths {
                value = anchor_path(&value).into_owned();
            }
            self.check_not_option(path, &item_path, &value)?;
            check_length(&item_path, value.len())?;
            values.push(value);
        }
        Ok(values)
    }

    fn fill_variable(
        &self,
        name: &str,
        template: &Template,
    ) -> Result<Option<PartialTemplate>, ProblemDetail> {
        let filled = fill_template(template, self.input, TemplateTarget::EnvVariable)?;
        let Some(mut value) = filled else {
            return Ok(None);
        };
        if let Some(start) = anchored_path_start(template, self.paths, self.input)
            && let Some(Segment::Text(text)) = value.0.first_mut()
        {
            let anchored = anchor_path(&text[start..]).into_owned();
            text.replace_range(start.., &anchored);
        }
        let path = template.parts.iter().find_map(|part| match part {
            TemplatePart::Value { path, .. } => Some(path.as_slice()),
            _ => None,
        });
        let bytes = name.len() + 1 + value.0.iter().map(segment_bytes).sum::<usize>();
        check_length(path.unwrap_or_default(), bytes)?;
        Ok(Some(value))
    }

    /// Returns the path of the value that the argument begins with; `None` if it begins with the author's own text. If
    /// the values before that text are empty, the first of them decides that the text begins the argument.
    fn leading_value<'t>(&self, template: &'t Template) -> Option<&'t [String]> {
        let leading = || {
            template.parts.iter().map_while(|part| match part {
                TemplatePart::Value { path, .. } => Some(path.as_slice()),
                _ => None,
            })
        };
        let is_empty = |path: &[String]| {
            let value = self.input.value_at(path);
            value.is_none_or(|raw| raw.get() == "\"\"")
        };
        leading()
            .find(|path| !is_empty(path))
            .or_else(|| leading().next())
    }

    /// Refuses an argument that the program could read as an option. Many programs do so even after `--`.
    fn check_not_option(
        &self,
        value: &[String],
        location: &[String],
        text: &str,
    ) -> Result<(), ProblemDetail> {
        if text.starts_with('-') && !self.dashes.iter().any(|allowed| allowed == value) {
            return Err(problem_at(
                location,
                "must not start with `-`, or the program could read it as an option",
            ));
        }
        Ok(())
    }
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

fn segment_bytes(piece: &Segment) -> usize {
    match piece {
        Segment::Text(text) => text.len(),
        Segment::Env { .. } => 0,
    }
}

// Fills a sandbox: the paths that a call may reach.

/// Fills the paths of `sandbox`. A path whose optional value is missing is left out.
fn fill_sandbox(
    sandbox: &Sandbox,
    input: &Input,
    problems: &mut ProblemCollector,
) -> SandboxInvocation {
    let mut fill = |entries: &[SandboxEntry]| {
        let places = entries
            .iter()
            .filter_map(|entry| problems.record(fill_entry(entry, input)));
        places.flatten().collect()
    };
    SandboxInvocation {
        read: fill(&sandbox.read),
        write: fill(&sandbox.write),
        network: sandbox.network.clone(),
        missing: sandbox.missing,
        changes_only_root: sandbox.changes_only_root,
    }
}

fn fill_entry(
    entry: &SandboxEntry,
    input: &Input,
) -> Result<Option<Vec<SandboxPlace>>, ProblemDetail> {
    let template = match entry {
        SandboxEntry::Root => return Ok(Some(vec![SandboxPlace::Root])),
        SandboxEntry::System => return Ok(Some(vec![SandboxPlace::System])),
        SandboxEntry::Path(template) => template,
    };
    if let Some((path, optional)) = template.sole_splat() {
        return fill_spread(path, optional, input);
    }
    let filled = fill_template(template, input, TemplateTarget::Argument)?;
    let place = if template.uses_input() {
        SandboxPlace::FromInput
    } else {
        SandboxPlace::Declared
    };
    Ok(filled.map(|filled| vec![place(filled)]))
}

fn fill_spread(
    path: &[String],
    optional: bool,
    input: &Input,
) -> Result<Option<Vec<SandboxPlace>>, ProblemDetail> {
    let Some(array) = find_value(input, path, optional)? else {
        return Ok(None);
    };
    let items = array
        .elements()
        .ok_or_else(|| problem_at(path, "must be an array"))?;
    let place = |item| {
        let text = TemplateTarget::Argument
            .encode(value_text(item))
            .map_err(|cause| problem_at(path, cause))?;
        let path = PartialTemplate(vec![Segment::Text(text)]);
        Ok(SandboxPlace::FromInput(path))
    };
    items
        .into_iter()
        .map(place)
        .collect::<Result<_, _>>()
        .map(Some)
}
