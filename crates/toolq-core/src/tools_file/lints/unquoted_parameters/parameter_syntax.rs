//! The syntax of parameters and assignments of shells.

/// Returns the length of `NAME=`, `NAME+=` or `NAME[i]=` at the start of `text`.
pub(super) fn assignment_len(text: &str) -> Option<usize> {
    let name =
        parameter_name(text).filter(|name| !name.starts_with(|c: char| !is_name_start(c)))?;
    let mut rest = &text[name.len()..];
    if rest.starts_with('[') {
        let end = rest.find([']', ' ', '\t', '\n'])?;
        rest = rest[end..].strip_prefix(']')?;
    }
    let rest = rest.strip_prefix('+').unwrap_or(rest);
    let value = rest.strip_prefix('=')?;
    Some(text.len() - value.len())
}

/// Returns the name of the parameter at the start of `text`: digits, `@`, `*`, or letters, digits and `_`.
pub(super) fn parameter_name(text: &str) -> Option<&str> {
    let first = text.chars().next()?;
    let len = match first {
        '@' | '*' => 1,
        _ if first.is_ascii_digit() => count_bytes(text, |c| c.is_ascii_digit()),
        _ if is_name_start(first) => count_bytes(text, |c| c.is_ascii_alphanumeric() || c == '_'),
        _ => return None,
    };
    Some(&text[..len])
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn count_bytes(text: &str, predicate: impl Fn(char) -> bool) -> usize {
    text.find(|c| !predicate(c)).unwrap_or(text.len())
}

/// Returns the length of `{…}` at the start of `text`, with the braces within.
pub(super) fn braced_len(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}
