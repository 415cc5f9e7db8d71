//! Finds the paths within arguments, variables and other values: the texts that a program could open.

use std::borrow::Cow;
use std::ops::Range;

use crate::check::fill::{find_value, value_text};
use crate::json::{Input, JsonText, json_pointer};
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

/// Returns the strings at `path` with their pointers. A list on the way, or at its end, stands for each of its elements.
fn values_at(input: &Input, path: &[String]) -> Vec<PathText> {
    let mut texts = Vec::new();
    collect_values(input.json(), path, &[], &mut texts);
    texts
}

fn collect_values(
    value: JsonText<'_>,
    path: &[String],
    place: &[String],
    texts: &mut Vec<PathText>,
) {
    let below = |name: &str| [place, &[name.to_owned()]].concat();
    if let Some(items) = value.elements() {
        for (index, item) in items.into_iter().enumerate() {
            collect_values(item, path, &below(&index.to_string()), texts);
        }
    } else if let [name, rest @ ..] = path {
        let member = value.object().and_then(|object| object.get(name));
        if let Some(member) = member.filter(|member| !member.is_null()) {
            collect_values(member, rest, &below(name), texts);
        }
    } else {
        let text = value.to_text().map(Cow::into_owned);
        texts.push(PathText::certain(json_pointer(place), text));
    }
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
                let Ok(Some(value)) = find_value(input, path, *optional) else {
                    return Vec::new();
                };
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

// Finds the paths in one argument or variable, once its values are filled in.

/// An argument or variable, and where its paths may begin and end.
struct FinishedText {
    text: String,
    starts: Vec<usize>,
    /// The values named in `paths`, with their pointers.
    values: Vec<(Range<usize>, String)>,
    /// The paths before the last variable, whose value isn't known.
    found: Vec<PathText>,
    /// Where a program may split the text.
    separators: Vec<char>,
    /// Whether a variable precedes the text.
    is_continued: bool,
}

impl FinishedText {
    /// Creates an empty text. Its first path begins at `start`.
    pub(crate) fn new(start: usize, separators: Vec<char>) -> Self {
        Self {
            text: String::new(),
            starts: vec![start],
            values: Vec::new(),
            found: Vec::new(),
            separators,
            is_continued: false,
        }
    }

    /// Adds text that isn't named in `paths`.
    fn push_text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds text that isn't known, so that no path continues after it.
    fn push_unknown(&mut self) {
        self.collect_paths();
        self.text.clear();
        self.starts.clear();
        self.values.clear();
        self.is_continued = true;
    }

    /// Adds a value that is named in `paths`.
    fn push_path(&mut self, pointer: String, value: &str) {
        let start = self.text.len();
        let continues_path = self.text.ends_with('/') && !self.starts.is_empty();
        if !continues_path && !self.starts.contains(&start) {
            self.starts.push(start);
        }
        self.text.push_str(value);
        self.values.push((start..self.text.len(), pointer));
    }

    /// Returns the paths, each once.
    fn into_paths(mut self) -> Vec<PathText> {
        self.collect_paths();
        self.found
    }

    /// Collects the text from each start to the end of the text, and to the end of each value after which a program
    /// could split it.
    fn collect_paths(&mut self) {
        let continues = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
        let whole = self.text.len();
        for start in self.starts.clone() {
            let values = self.values.iter().filter(|(value, _)| value.end >= start);
            let mut ends: Vec<(usize, String)> = values
                .map(|(value, pointer)| (value.end, pointer.clone()))
                .collect();
            let first = ends.first().map(|(_, pointer)| (whole, pointer.clone()));
            ends.retain(|(end, _)| *end < whole && !self.text[*end..].starts_with(continues));
            for (end, pointer) in first.into_iter().chain(ends) {
                self.collect(start..end, pointer, false);
            }
        }
        self.collect_guesses();
    }

    /// Collects what the text means to a program that separates it elsewhere: not at all, or also within a value. So
    /// `{a}:{b}` can become three paths, and `x=y/{name}` can be below the directory `x=y`.
    fn collect_guesses(&mut self) {
        if let Some((_, pointer)) = self.values.first().cloned()
            && !self.is_continued
        {
            self.collect(0..self.text.len(), pointer, true);
        }
        let mut start = 0;
        let ends = self.text.match_indices(self.separators.as_slice());
        let mut ends: Vec<usize> = ends.map(|(index, _)| index).collect();
        ends.push(self.text.len());
        for end in ends {
            let of_piece =
                |(value, _): &&(Range<usize>, String)| value.start < end && start < value.end;
            if let Some((value, pointer)) = self.values.iter().find(of_piece).cloned() {
                // The author's absolute path is meant, and what a variable holds isn't known.
                let is_absolute = start < value.start && self.text[start..].starts_with('/');
                if start == 0 && self.is_continued {
                    self.collect(value.start..end, pointer, true);
                } else if !is_absolute {
                    self.collect(start..end, pointer, true);
                }
            }
            start = end + 1;
        }
    }

    fn collect(&mut self, range: Range<usize>, pointer: String, is_guess: bool) {
        let text = Some(self.text[range].to_owned());
        let is_known = |path: &PathText| path.pointer == pointer && path.text == text;
        if !self.found.iter().any(is_known) {
            self.found.push(PathText {
                pointer,
                text,
                is_guess,
            });
        }
    }
}

// Finds where a path begins within an argument or variable, and hands it over so that a program takes it for a path.

/// Ends the text before a path in an argument, as in `--file={path}` and `HEAD:{path}`.
const PATH_SEPARATORS: [char; 2] = ['=', ':'];

/// Returns the path with `./` before it, unless it can't be mistaken for anything but a path: an option, a variable
/// (`A=1`), a host or a revision (`h:x`), a response file (`@x`).
pub(crate) fn anchor_path(path: &str) -> Cow<'_, str> {
    let first = path.split('/').next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ' ');
    if first.chars().all(is_plain) && !first.starts_with(['-', ' ']) {
        Cow::Borrowed(path)
    } else {
        Cow::Owned(format!("./{path}"))
    }
}

/// Returns the length of the author's text before a path that begins with an input named in `paths`. `None` if the
/// template has no such path.
pub(crate) fn anchored_path_start(
    template: &Template,
    paths: &[Vec<String>],
    input: &Input,
) -> Option<usize> {
    let start = path_start(template);
    let mut parts = template.parts.as_slice();
    if let [TemplatePart::Text(text), rest @ ..] = parts {
        if text.len() > start {
            return None;
        }
        parts = rest;
    }
    let first = parts.iter().find(|part| match part {
        TemplatePart::Value { path, .. } => {
            input.value_at(path).is_some_and(|raw| raw.get() != "\"\"")
        }
        _ => true,
    });
    match first {
        Some(TemplatePart::Value { path, .. }) if paths.contains(path) => Some(start),
        _ => None,
    }
}

/// Returns where the path begins in the text before the first placeholder: after its last `=` or `:`.
fn path_start(template: &Template) -> usize {
    match template.parts.first() {
        Some(TemplatePart::Text(text)) => text.rfind(PATH_SEPARATORS).map_or(0, |index| index + 1),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the pointer and text of each path, and whether it's only a guess.
    fn paths_in(finished: FinishedText) -> Vec<(String, String, bool)> {
        let paths = finished.into_paths().into_iter();
        paths
            .map(|path| (path.pointer, path.text.unwrap_or_default(), path.is_guess))
            .collect()
    }

    fn path(pointer: &str, text: &str, is_guess: bool) -> (String, String, bool) {
        (pointer.to_owned(), text.to_owned(), is_guess)
    }

    /// In `{p},ro`, programs read the path up to the comma, or all of it.
    #[test]
    fn a_path_may_end_with_its_value() {
        let mut finished = FinishedText::new(0, vec![':']);
        finished.push_path("/p".to_owned(), "../x");
        finished.push_text(",ro");
        let paths = paths_in(finished);
        assert!(paths.contains(&path("/p", "../x", false)), "{paths:?}");
        assert!(paths.contains(&path("/p", "../x,ro", false)), "{paths:?}");
    }

    /// Only an absolute path that the author wrote is meant: `/lib/{p}`, but not `x:{p}`.
    #[test]
    fn an_absolute_path_from_a_value_is_judged_up_to_a_separator() {
        let mut finished = FinishedText::new(0, vec![':']);
        finished.push_text("x:");
        finished.push_path("/p".to_owned(), "/etc:/b");
        let paths = paths_in(finished);
        assert!(paths.contains(&path("/p", "/etc", true)), "{paths:?}");
    }

    /// The content of a variable is unknown, so a path after it begins with the value.
    #[test]
    fn pieces_of_a_value_behind_a_variable_are_judged() {
        let mut finished = FinishedText::new(0, vec![':']);
        finished.push_unknown();
        finished.push_text("/lib/");
        finished.push_path("/p".to_owned(), "a:b");
        let paths = paths_in(finished);
        assert!(paths.contains(&path("/p", "a", true)), "{paths:?}");
        assert!(paths.contains(&path("/p", "b", true)), "{paths:?}");
    }

    #[test]
    fn the_same_path_of_two_inputs_is_judged_for_both() {
        let mut finished = FinishedText::new(0, vec![':']);
        finished.push_path("/a".to_owned(), "x");
        finished.push_text(":");
        finished.push_path("/b".to_owned(), "x");
        let paths = paths_in(finished);
        let pointers = |pointer: &str| {
            let of_pointer = paths
                .iter()
                .filter(|path| path.0 == pointer && path.1 == "x");
            of_pointer.count()
        };
        assert_eq!((pointers("/a"), pointers("/b")), (1, 1), "{paths:?}");
    }
}
