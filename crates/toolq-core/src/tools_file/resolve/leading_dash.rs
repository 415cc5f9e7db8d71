//! Looks up whether a schema accepts a value that begins with `-` when it is an argument: a string, or a negative
//! number.

use serde_json::Value;

use crate::tools_file::resolve::schema_presence::allows_type;

/// Whether a schema accepts a value that begins with `-`, judging by its `type`, its fixed values, the start of its
/// `pattern` and its `minimum`. Keywords that combine schemas aren't looked into.
pub(crate) fn may_start_with_dash(schema: &Value) -> bool {
    let starts_with_dash = |value: &Value| match value {
        Value::String(text) => text.starts_with('-'),
        other => other.to_string().starts_with('-'),
    };
    if let Some(constant) = schema.get("const") {
        return starts_with_dash(constant);
    }
    if let Some(Value::Array(all)) = schema.get("enum") {
        return all.iter().any(starts_with_dash);
    }
    let pattern = schema.get("pattern").and_then(Value::as_str);
    let may_be_string = allows_type(schema, "string") && pattern.is_none_or(pattern_may_match_dash);
    let is_number_type = allows_type(schema, "number") || allows_type(schema, "integer");
    may_be_string || is_number_type && !excludes_negative(schema)
}

fn excludes_negative(schema: &Value) -> bool {
    ["minimum", "exclusiveMinimum"]
        .iter()
        .filter_map(|keyword| schema.get(keyword).and_then(Value::as_f64))
        .any(|least| least >= 0.0)
}

/// Whether a pattern may match a text that begins with `-`. Assumes that it may, unless each alternative begins with
/// `^` and a character that isn't `-`.
fn pattern_may_match_dash(pattern: &str) -> bool {
    alternatives(pattern).any(|alternative| {
        alternative
            .strip_prefix('^')
            .is_none_or(first_atom_may_be_dash)
    })
}

/// Whether the text that this part of a pattern matches may begin with `-`.
fn first_atom_may_be_dash(rest: &str) -> bool {
    let (may_be_dash, after) = match rest.chars().next() {
        None => return true,
        Some('$') => return false,
        Some('[') => match rest[1..].split_once(']') {
            Some((class, after)) => (class_contains_dash(class), after),
            None => return true,
        },
        Some('(') => {
            let Some(end) = group_end(rest) else {
                return true;
            };
            let group = &rest[1..end];
            let inner = group.strip_prefix("?:").unwrap_or(group);
            let may_be_dash =
                inner.starts_with('?') || alternatives(inner).any(first_atom_may_be_dash);
            (may_be_dash, &rest[end + 1..])
        }
        Some('\\') => {
            let mut escaped = rest[1..].chars();
            let Some(class) = escaped.next() else {
                return true;
            };
            let is_known =
                matches!(class, 'd' | 'w' | 's') || class.is_ascii_punctuation() && class != '-';
            (!is_known, escaped.as_str())
        }
        Some(first) => {
            let may_be_dash = matches!(first, '.' | '-' | '*' | '+' | '?' | '{' | '^');
            (may_be_dash, &rest[first.len_utf8()..])
        }
    };
    may_be_dash || after_optional(after).is_some_and(first_atom_may_be_dash)
}

/// Returns the rest of a pattern after a quantifier that allows zero repetitions. Returns `None` if the pattern doesn't
/// begin with one.
fn after_optional(rest: &str) -> Option<&str> {
    let after = match rest.strip_prefix(['*', '?']) {
        Some(after) => after,
        None if rest.starts_with("{0") || rest.starts_with("{,") => rest.split_once('}')?.1,
        None => return None,
    };
    // A quantifier may be lazy.
    Some(after.strip_prefix('?').unwrap_or(after))
}

/// Whether a character class, without its brackets, contains `-`.
fn class_contains_dash(class: &str) -> bool {
    let (is_negated, members) = match class.strip_prefix('^') {
        Some(members) => (true, members),
        None => (false, class),
    };
    let characters: Vec<char> = members.chars().collect();
    let is_range_sign = |index: usize| index > 0 && index + 1 < characters.len();
    let has_literal = characters
        .iter()
        .enumerate()
        .any(|(index, c)| *c == '-' && (!is_range_sign(index) || characters[index - 1] == '\\'));
    let in_range = characters
        .windows(3)
        .any(|window| window[1] == '-' && window[0] <= '-' && '-' <= window[2]);
    let has_inverted_class = ["\\D", "\\W", "\\S", "\\P", "\\x", "\\u"]
        .iter()
        .any(|escape| members.contains(escape));
    if is_negated {
        // Only the literal form is known to exclude it.
        !has_literal
    } else {
        has_literal || in_range || has_inverted_class
    }
}

/// Splits a pattern at the `|` outside of groups and classes.
fn alternatives(pattern: &str) -> impl Iterator<Item = &str> {
    let mut separators = Vec::new();
    let mut scanner = PatternScanner::default();
    for (index, c) in pattern.char_indices() {
        if scanner.advance(c) == 0 && c == '|' && !scanner.is_quoted {
            separators.push(index);
        }
    }
    let starts = std::iter::once(0).chain(separators.clone().into_iter().map(|index| index + 1));
    let ends = separators.into_iter().chain(std::iter::once(pattern.len()));
    starts.zip(ends).map(|(start, end)| &pattern[start..end])
}

/// Returns the index of the parenthesis that closes the group at the start of `pattern`.
fn group_end(pattern: &str) -> Option<usize> {
    let mut scanner = PatternScanner::default();
    pattern
        .char_indices()
        .find(|(_, c)| scanner.advance(*c) == 0 && *c == ')' && !scanner.is_quoted)
        .map(|(index, _)| index)
}

/// Follows the groups, classes and escapes of a pattern.
#[derive(Default)]
struct PatternScanner {
    depth: usize,
    in_class: bool,
    is_escaped: bool,
    /// Whether the last character was part of a class or an escape, where it has no meaning of its own.
    is_quoted: bool,
}

impl PatternScanner {
    /// Returns how many groups are open after `c`.
    fn advance(&mut self, c: char) -> usize {
        self.is_quoted = self.is_escaped || self.in_class;
        match c {
            _ if self.is_escaped => self.is_escaped = false,
            '\\' => self.is_escaped = true,
            ']' => self.in_class = false,
            '[' => self.in_class = true,
            '(' if !self.in_class => self.depth += 1,
            ')' if !self.in_class => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.depth
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_leading_dash_is_possible_unless_the_schema_excludes_it() {
        for (schema, may) in [
            (json!({}), true),
            (json!({"type": "string"}), true),
            (json!({"type": ["string", "null"]}), true),
            (json!({"type": "boolean"}), false),
            (json!({"enum": ["a", "b"]}), false),
            (json!({"enum": ["a", "-b"]}), true),
            (json!({"enum": [1, -1]}), true),
            (json!({"const": "a"}), false),
            (json!({"type": "integer"}), true),
            (json!({"type": "number", "minimum": -1}), true),
            (json!({"type": "integer", "minimum": 0}), false),
            (json!({"type": "number", "exclusiveMinimum": 0}), false),
            (json!({"type": ["integer", "string"], "minimum": 1}), true),
        ] {
            assert_eq!(may_start_with_dash(&schema), may, "{schema}");
        }
    }

    #[test]
    fn a_pattern_excludes_a_dash_if_every_alternative_does() {
        for (pattern, may) in [
            ("^[a-z]+$", false),
            ("^[a-z-]+$", true),
            ("^[a\\-z]", true),
            ("^[+-9]", true),
            ("^[^-]", false),
            ("^[^-].*$", false),
            ("^[^a]", true),
            ("^[a-z]*$", false),
            ("^[a-z]*?[0-9]$", false),
            ("^(?:a|b)?x", false),
            ("^[a-z]*-", true),
            ("^[a-z]*", true),
            ("^[a-z]{0,2}", true),
            ("^[a-z]{0,2}$", false),
            ("^[a-z]{0,2}-?$", true),
            ("^[a-z]{0", false),
            ("^a|b", true),
            ("^a|^b", false),
            ("^(a|b)$", false),
            ("^(?:a|-b)$", true),
            ("^(a|b)?", true),
            ("^(?!-)", true),
            ("^v[0-9]", false),
            ("^\\d+$", false),
            ("^\\S+$", true),
            ("^$|^x", false),
            ("^.", true),
            ("^-?[0-9]+$", true),
            ("x", true),
            ("", true),
        ] {
            assert_eq!(pattern_may_match_dash(pattern), may, "{pattern}");
        }
    }
}
