//! Finds the paths within arguments, variables and other values: the texts that a program could open.

use std::borrow::Cow;

use crate::check::fill::finished_text::FinishedText;
use crate::check::fill::path_anchor::path_start;
use crate::check::fill::template_values::{find_value, value_text};
use crate::json::json_pointer;
use crate::json::{Input, JsonText};
use crate::types::{
    BodyTemplate, CommandBacking, McpBacking, SandboxEntry, StdinSource, Template, TemplatePart,
    Tool,
};

/// Where programs split what they read from a variable or stdin, as `xargs` and `tar --files-from=-` do.
const LIST_SEPARATORS: [char; 10] = [' ', '\t', '\n', '\r', ':', ',', ';', '"', '\'', '\\'];

/// A text that a program could open as a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PathText {
    /// JSON pointer to the input that it comes from.
    pub(crate) pointer: String,
    /// `None` if the input isn't a string.
    pub(crate) text: Option<String>,
    /// Whether only some programs would open this: those that see a separator where others don't. It matters only where
    /// it leads to something that exists.
    pub(crate) is_guess: bool,
}

impl PathText {
    fn certain(pointer: String, text: Option<String>) -> Self {
        Self {
            pointer,
            text,
            is_guess: false,
        }
    }
}

/// Returns the separators in the author's texts, where a program may split. The `=` or `:` after which the path begins
/// isn't counted: in `--file={path}`, the path may have a `=`.
fn separators(template: &Template) -> Vec<char> {
    let start = path_start(template);
    let parts = template.parts.iter().enumerate();
    let texts = parts.flat_map(|(index, part)| match part {
        TemplatePart::Text(text) if index == 0 => {
            [&text[..start.saturating_sub(1)], &text[start..]]
        }
        TemplatePart::Text(text) => [text.as_str(), ""],
        _ => ["", ""],
    });
    let mut found: Vec<char> = texts
        .flat_map(str::chars)
        .filter(|c| matches!(c, ':' | ',' | ';' | '='))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns the texts of the arguments, the variables and the sandbox of `command` that could be opened because of `paths`.
pub(crate) fn command_path_texts(
    command: &CommandBacking,
    paths: &[Vec<String>],
    input: &Input,
) -> Vec<PathText> {
    let mut texts = Vec::new();
    for (_, template) in &command.env {
        texts.extend(template_path_texts(
            template,
            paths,
            input,
            &LIST_SEPARATORS,
        ));
    }
    for template in command.arguments.iter().chain(sandbox_templates(command)) {
        if let Some((path, _)) = template.sole_splat() {
            if paths.iter().any(|declared| declared == path) {
                texts.extend(values_at(input, path));
            }
        } else {
            texts.extend(template_path_texts(template, paths, input, &[]));
        }
    }
    texts
}

/// Returns the paths of the sandbox of `command`.
fn sandbox_templates(command: &CommandBacking) -> impl Iterator<Item = &Template> {
    let sandbox = command.sandbox.iter();
    let entries = sandbox.flat_map(|sandbox| sandbox.read.iter().chain(&sandbox.write));
    entries.filter_map(|entry| match entry {
        SandboxEntry::Path(template) => Some(template),
        SandboxEntry::Root | SandboxEntry::System => None,
    })
}

/// Returns the texts of the arguments of `mcp` that its server could open because of `paths`.
pub(crate) fn mcp_path_texts(
    mcp: &McpBacking,
    paths: &[Vec<String>],
    input: &Input,
) -> Vec<PathText> {
    let templates = mcp.arguments.iter().flat_map(BodyTemplate::templates);
    templates
        .flat_map(|template| template_path_texts(template, paths, input, &[]))
        .collect()
}

/// Returns the inputs named in `paths` that don't only become arguments and variables, each as a text of its own: they
/// are part of stdin, of a request, or of a value that is passed on as JSON.
pub(crate) fn value_path_texts(
    tool: &Tool,
    command: Option<&CommandBacking>,
    input: &Input,
) -> Vec<PathText> {
    let is_only_argument = |path: &Vec<String>| {
        command.is_some_and(|command| {
            !stdin_contains(&command.stdin, path)
                && command_templates(command).any(|template| uses(template, path))
                && !command_templates(command).any(|template| uses_relative(template, path))
        })
    };
    let mut texts = Vec::new();
    for path in tool.paths.iter().filter(|path| !is_only_argument(path)) {
        let values = values_at(input, path);
        if command.is_some_and(|command| stdin_template_uses(&command.stdin, path)) {
            texts.extend(values.iter().flat_map(list_items));
        }
        texts.extend(values);
    }
    texts
}

/// Returns the parts of a value for a program that reads a list of paths.
fn list_items(value: &PathText) -> Vec<PathText> {
    let text = value.text.as_deref().unwrap_or_default();
    let items = text.split(LIST_SEPARATORS).filter(|item| *item != text);
    items
        .map(|item| PathText {
            pointer: value.pointer.clone(),
            text: Some(item.to_owned()),
            is_guess: true,
        })
        .collect()
}

fn stdin_template_uses(stdin: &StdinSource, path: &[String]) -> bool {
    matches!(stdin, StdinSource::Template(template) if uses(template, path))
}

fn command_templates(command: &CommandBacking) -> impl Iterator<Item = &Template> {
    let variables = command.env.iter().map(|(_, template)| template);
    command.arguments.iter().chain(variables)
}

fn stdin_contains(stdin: &StdinSource, path: &[String]) -> bool {
    match stdin {
        StdinSource::Input => true,
        StdinSource::None => false,
        StdinSource::Template(template) => uses(template, path) || uses_relative(template, path),
    }
}

/// Whether the template contains exactly this value.
fn uses(template: &Template, path: &[String]) -> bool {
    template.value_paths().any(|other| other == path)
}

/// Whether the template contains a value that this one is a part of, or the other way around.
fn uses_relative(template: &Template, path: &[String]) -> bool {
    template
        .value_paths()
        .any(|other| other != path && (other.starts_with(path) || path.starts_with(other)))
}

/// Returns the strings at `path` with their pointers: one, or each item of an array.
fn values_at(input: &Input, path: &[String]) -> Vec<PathText> {
    let Some(raw) = input.value_at(path).filter(|raw| raw.get() != "null") else {
        return Vec::new();
    };
    let pointer = json_pointer(path);
    let string = |value: JsonText<'_>| value.to_text().map(Cow::into_owned);
    let value = JsonText::from(raw);
    let Some(items) = value.elements() else {
        let text = string(value);
        return vec![PathText::certain(pointer, text)];
    };
    let items = items.into_iter().enumerate();
    items
        .map(|(index, item)| PathText::certain(format!("{pointer}/{index}"), string(item)))
        .collect()
}

/// Returns the paths in one argument or variable. Usually that is one, the finished text. There are more if a program
/// could split the text: in `{dir}:/data` it could open `{dir}`, or a part of `{dir}` if that contains a `:`, too, and
/// in `@{file}` it could open `{file}`. `list_separators` split values as well. After `://`, a program decodes `%2e`.
fn template_path_texts(
    template: &Template,
    paths: &[Vec<String>],
    input: &Input,
    list_separators: &[char],
) -> Vec<PathText> {
    let mut separators = separators(template);
    separators.extend(list_separators);
    let mut finished = FinishedText::new(path_start(template), separators);
    let mut is_url = false;
    let mut decoded = Vec::new();
    for part in &template.parts {
        match part {
            TemplatePart::Text(text) => {
                is_url |= text.contains("://");
                finished.push_text(text);
            }
            // What a variable holds isn't known here.
            TemplatePart::Env { .. } => finished.push_unknown(),
            TemplatePart::Value { path, optional, .. } => {
                // A value that is missing omits the argument, or makes the call invalid.
                let Ok(Some(raw)) = find_value(input, path, *optional) else {
                    return Vec::new();
                };
                let value = JsonText::from(raw);
                if !paths.contains(path) {
                    finished.push_text(&value_text(value));
                    continue;
                }
                let pointer = json_pointer(path);
                let Some(text) = value.to_text() else {
                    return vec![PathText::certain(pointer, None)];
                };
                if is_url && text.contains('%') {
                    decoded.extend(decoded_path(&pointer, &text));
                }
                finished.push_path(pointer, &text);
            }
        }
    }
    decoded.extend(finished.into_paths());
    decoded
}

/// Returns a path outside for a path in a URL that climbs once it is decoded, since the path before it isn't known.
fn decoded_path(pointer: &str, text: &str) -> Option<PathText> {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8_lossy();
    let climbs = decoded.split('/').any(|part| part == "..");
    climbs.then(|| PathText::certain(pointer.to_owned(), Some(format!("/{decoded}"))))
}
