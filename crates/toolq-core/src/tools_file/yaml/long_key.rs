//! Finds a key that is too long for YAML. The parser stops there, but complains about something else.

use crate::types::Span;

/// How many characters YAML allows before the `:` of a key.
pub(super) const MAX_KEY_CHARS: usize = 1024;

/// Returns the place of the key if it is why the parser stopped at byte `stop`: at the beginning of the key, or at its `:`.
pub(super) fn find_long_key(text: &str, stop: usize) -> Option<Span> {
    let line_start = text[..stop].rfind('\n').map_or(0, |newline| newline + 1);
    let rest = text[stop..].lines().next()?;
    let (start, key) = if rest.starts_with(':') {
        let key = last_key(&text[line_start..stop]);
        (stop - key.len(), key)
    } else {
        (stop, first_key(rest)?)
    };
    let span = Span {
        start,
        len: key.len(),
    };
    (key.chars().count() > MAX_KEY_CHARS).then_some(span)
}

/// Returns the key at the end of a line up to its `:`.
fn last_key(line: &str) -> &str {
    let quote = line.chars().next_back().filter(|c| is_quote(*c));
    if let Some(quote) = quote {
        let start = line[..line.len() - 1].rfind(quote).unwrap_or(0);
        return &line[start..];
    }
    let after_separator = line.rfind(['{', '[', ',']).map_or(0, |index| index + 1);
    line[after_separator..].trim_start_matches([' ', '-'])
}

/// Returns the key at the beginning of a line.
fn first_key(line: &str) -> Option<&str> {
    let end = match line.chars().next().filter(|c| is_quote(*c)) {
        Some(quote) => 1 + line[1..].find(quote)? + 1,
        None => line.find(": ").or(line.strip_suffix(':').map(str::len))?,
    };
    Some(&line[..end])
}

fn is_quote(c: char) -> bool {
    c == '"' || c == '\''
}
