//! What counts as a placeholder: values and variables, and what people write in their place by mistake.

use crate::types::TemplatePart;

/// Returns the length of `$NAME` at the start of `text`. Only uppercase names count, the convention for variables: `$1`
/// and `$x` have a meaning in many languages.
pub(crate) fn shell_variable_len(text: &str) -> Option<usize> {
    let name = text.strip_prefix('$')?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = &name[..name.find(|c| !is_part(c)).unwrap_or(name.len())];
    let is_capital = |c: char| !c.is_ascii_lowercase();
    let is_name = name.len() > 1 && is_variable_name(name) && name.chars().all(is_capital);
    is_name.then(|| 1 + name.len())
}

/// Returns the length of `{ name }`, `{name|filter}`, `{name!r}` or `{name[0]}` at the start of `text`.
pub(crate) fn foreign_placeholder_len(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('{')?;
    let inner = &inner[..inner.find(['{', '}', '\n'])?];
    let is_closed = text[1 + inner.len()..].starts_with('}');
    (is_closed && foreign_placeholder_path(inner).is_some()).then(|| inner.len() + 2)
}

/// Returns the name in the inner text of such a placeholder, split at the dots.
pub(crate) fn foreign_placeholder_path(inner: &str) -> Option<Vec<String>> {
    let name = inner.split(['|', '!', '[']).next()?.trim();
    parse_dotted_path(name)
}

/// `${NAME}` or `${NAME:-default}` in a text.
pub(crate) struct EnvPlaceholder<'t> {
    /// Its length in the text, in bytes.
    pub len: usize,
    pub name: &'t str,
    pub default: Option<&'t str>,
}

/// Parses `${NAME}` or `${NAME:-default}` at the start of `text`.
pub(crate) fn parse_env_variable(text: &str) -> Option<EnvPlaceholder<'_>> {
    let inner = text.strip_prefix("${")?;
    let inner = &inner[..inner.find('}')?];
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    is_variable_name(name).then_some(EnvPlaceholder {
        len: inner.len() + 3,
        name,
        default,
    })
}

/// Whether `name` is a valid name of an environment variable in POSIX shells.
pub(crate) fn is_variable_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Parses `{a.b}`, `{a?}`, `{a...}` or `{a?...}` at the start of `text` into its length and part. Names consist of
/// letters, digits, `_` and `-`, and start with a letter or `_`, so `{3}`, `{a,b}`, and `{print $1}` aren't
/// placeholders.
pub(crate) fn parse_placeholder(text: &str) -> Option<(usize, TemplatePart)> {
    let inner = text.strip_prefix('{')?;
    let end = inner.find(|c: char| !(is_name_character(c) || matches!(c, '.' | '?')))?;
    if !inner[end..].starts_with('}') {
        return None;
    }
    let inner = &inner[..end];
    let without_ellipsis = inner.strip_suffix("...");
    let dotted = without_ellipsis.unwrap_or(inner);
    let without_question_mark = dotted.strip_suffix('?');
    let (splat, optional) = (without_ellipsis.is_some(), without_question_mark.is_some());
    let dotted = without_question_mark.unwrap_or(dotted);
    let path = parse_dotted_path(dotted)?;
    let part = TemplatePart::Value {
        path,
        optional,
        splat,
    };
    Some((inner.len() + 2, part))
}

fn is_name_character(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

/// Splits `a.b` into `["a", "b"]`, if each part is a valid placeholder name.
pub(crate) fn parse_dotted_path(dotted: &str) -> Option<Vec<String>> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && name.chars().all(is_name_character)
    };
    let names = dotted.split('.');
    names
        .map(|name| is_name(name).then(|| name.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_begins_with_a_letter_or_an_underscore() {
        for (name, is_name) in [
            ("A", true),
            ("_", true),
            ("_a1", true),
            ("", false),
            ("1A", false),
            ("-A", false),
            ("A-B", false),
            ("\u{c4}", false),
        ] {
            assert_eq!(is_variable_name(name), is_name, "{name}");
        }
    }

    #[test]
    fn only_the_name_of_a_shell_variable_is_marked() {
        for (text, len) in [
            ("$HOME", Some(5)),
            ("$A_1/x", Some(4)),
            ("$A", None),
            ("$home", None),
            ("$1A", None),
            ("$", None),
        ] {
            assert_eq!(shell_variable_len(text), len, "{text}");
        }
    }
}
