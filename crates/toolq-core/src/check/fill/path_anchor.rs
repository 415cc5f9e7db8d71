//! Finds where a path begins within an argument or variable, and hands it over so that a program takes it for a path.

use std::borrow::Cow;

use crate::json::Input;
use crate::types::{Template, TemplatePart};

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
pub(crate) fn path_start(template: &Template) -> usize {
    match template.parts.first() {
        Some(TemplatePart::Text(text)) => text.rfind(PATH_SEPARATORS).map_or(0, |index| index + 1),
        _ => 0,
    }
}
