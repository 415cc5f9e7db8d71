//! Parses the lines `NAME=value` of an `env_file`.
//!
//! The crates for this format expand `$NAME` in values, and their errors quote the line, which may be a secret. Here,
//! nothing is expanded, no error contains any part of a value, and anything that shells and other tools would read
//! differently is an error.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::template::is_variable_name;

/// Why a line can't be used. Contains no part of the line but a valid name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EnvLineError {
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) message: String,
    pub(crate) hint: &'static str,
}

/// A problem with what is read at the moment: its message and hint.
type Fault = (String, &'static str);

const ASSIGNMENT_HINT: &str = "write each variable as NAME=value, without spaces around `=`";
const QUOTE_HINT: &str = "put the whole value in single quotes: NAME='value'";

/// Parses the text of a file. Returns every variable, or every bad line.
pub(crate) fn parse_env_file(text: &str) -> Result<BTreeMap<String, String>, Vec<EnvLineError>> {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut variables, mut errors) = (BTreeMap::new(), Vec::new());
    let mut lines_by_name = BTreeMap::new();
    let mut line = 1;
    while !rest.is_empty() {
        let (read, after) = parse_assignment(rest);
        match read {
            Ok(None) => {}
            Ok(Some((name, value))) => match lines_by_name.entry(name.clone()) {
                Entry::Vacant(entry) => {
                    entry.insert(line);
                    variables.insert(name, value);
                }
                Entry::Occupied(first) => errors.push(EnvLineError {
                    line,
                    message: format!("{name} is set twice, first on line {}", first.get()),
                    hint: "remove one of them",
                }),
            },
            Err((message, hint)) => errors.push(EnvLineError {
                line,
                message,
                hint,
            }),
        }
        line += rest[..rest.len() - after.len()].matches('\n').count();
        rest = after;
    }
    if errors.is_empty() {
        Ok(variables)
    } else {
        Err(errors)
    }
}

/// A name and its value; `None` for a comment or an empty line.
type Assignment = Option<(String, String)>;

/// Parses the next assignment, comment or empty line. Returns the text after its line, too.
fn parse_assignment(text: &str) -> (Result<Assignment, Fault>, &str) {
    let (line, after) = split_line(text);
    let line = line.trim_start_matches([' ', '\t']);
    if line.trim().is_empty() || line.starts_with('#') {
        return (Ok(None), after);
    }
    let assignment = line.strip_prefix("export ").unwrap_or(line).trim_start();
    let Some((name, value)) = assignment.split_once('=') else {
        let fault = ("there is no `=`".to_owned(), ASSIGNMENT_HINT);
        return (Err(fault), after);
    };
    if !is_variable_name(name) {
        let message = "what is before `=` isn't the name of a variable".to_owned();
        return (Err((message, ASSIGNMENT_HINT)), after);
    }
    if name.starts_with("TOOLQ_") {
        let message = format!("{name} is reserved: toolq sets the variables with this prefix");
        return (Err((message, "use another name")), after);
    }
    // A quoted value may have several lines.
    let value_start = value.as_ptr() as usize - text.as_ptr() as usize;
    let (value, after) = match value.as_bytes().first() {
        Some(quote @ (b'\'' | b'"')) => parse_quoted(&text[value_start + 1..], *quote == b'"'),
        _ => (parse_unquoted(value), after),
    };
    let value = value.and_then(|value| {
        if value.contains('\0') {
            let message = "the value has a NUL character, which no variable can have".to_owned();
            return Err((message, "remove it"));
        }
        Ok(Some((name.to_owned(), value)))
    });
    (value, after)
}

/// Parses a value up to the end of its line, or to a comment.
fn parse_unquoted(line: &str) -> Result<String, Fault> {
    let comment = line
        .char_indices()
        .find(|(at, c)| *c == '#' && line[..*at].ends_with([' ', '\t']));
    let value = line[..comment.map_or(line.len(), |(at, _)| at)].trim_end();
    if value.starts_with([' ', '\t']) {
        return Err(("there is a space after `=`".to_owned(), ASSIGNMENT_HINT));
    }
    if value.contains(['\'', '"', '\\', '`', '$']) || value.contains([' ', '\t']) {
        let message = "a value without quotes has a space, a quote, `\\`, `$` or a backtick";
        return Err((message.to_owned(), QUOTE_HINT));
    }
    Ok(value.to_owned())
}

/// Parses a value after its opening quote. Returns the text after the line with the closing quote.
fn parse_quoted(text: &str, is_double: bool) -> (Result<String, Fault>, &str) {
    let quote = if is_double { '"' } else { '\'' };
    let (mut value, mut fault) = (String::new(), None);
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if c == quote {
            let (rest, after) = split_line(&text[at + 1..]);
            let rest = rest.trim_start_matches([' ', '\t']);
            if !rest.is_empty() && !rest.starts_with('#') {
                let message = "there is more after the closing quote".to_owned();
                fault.get_or_insert((message, QUOTE_HINT));
            }
            return (fault.map_or(Ok(value), Err), after);
        }
        if is_double && c == '\\' {
            match chars.next().map(|(_, escaped)| escaped) {
                Some('n') => value.push('\n'),
                Some('r') => value.push('\r'),
                Some('t') => value.push('\t'),
                Some(escaped @ ('"' | '\\' | '$')) => value.push(escaped),
                _ => {
                    let message = "there is an unknown escape in double quotes".to_owned();
                    let hint = "use \\n, \\r, \\t, \\\", \\\\ and \\$, or single quotes, in which nothing is an escape";
                    fault.get_or_insert((message, hint));
                }
            }
            continue;
        }
        if is_double && matches!(c, '$' | '`') {
            let message = format!("`{c}` in double quotes, which a shell would expand");
            fault.get_or_insert((message, "use single quotes, in which it is itself"));
        }
        value.push(c);
    }
    let fault = ("the quote isn't closed".to_owned(), QUOTE_HINT);
    // What follows belongs to the value as likely as not, so nothing of it is reported.
    (Err(fault), "")
}

/// Splits after the first line, whose end isn't part of it.
fn split_line(text: &str) -> (&str, &str) {
    let (line, after) = text.split_once('\n').unwrap_or((text, ""));
    (line.strip_suffix('\r').unwrap_or(line), after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_written() {
        let text = "\u{feff}# comment\n\n  A=1\r\nexport B=two#2 # comment\nC=\nD='it is $HOME # `x` \\n'\nE=\"a\\n\\\"b\\\" \\$c\\\\\" # comment\nF='first\nsecond'\nG=é=ü";
        let variables = parse_env_file(text).unwrap();
        let variables: Vec<(&str, &str)> = variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let expected = [
            ("A", "1"),
            ("B", "two#2"),
            ("C", ""),
            ("D", "it is $HOME # `x` \\n"),
            ("E", "a\n\"b\" $c\\"),
            ("F", "first\nsecond"),
            ("G", "é=ü"),
        ];
        assert_eq!(variables, expected);
    }

    /// Every bad line is reported, and no part of its value.
    #[test]
    fn bad_lines_are_errors_without_the_value() {
        for (text, line, part) in [
            ("A=1\nhunter2\n", 2, "no `=`"),
            ("hunter2 =1", 1, "the name of a variable"),
            ("A=1\nhunter-2=1", 2, "the name of a variable"),
            ("A = hunter2", 1, "the name of a variable"),
            ("A= hunter2", 1, "a space after `=`"),
            ("A=it's hunter2", 1, "without quotes"),
            ("A=hunter2 hunter2", 1, "without quotes"),
            ("A=$hunter2", 1, "without quotes"),
            ("A=\"$hunter2\"", 1, "a shell would expand"),
            ("A=\"\\hunter2\"", 1, "unknown escape"),
            ("A='hunter2'hunter2", 1, "after the closing quote"),
            ("A='a\nb'\nB=\"hunter2\n\n", 3, "isn't closed"),
            (
                "A='1'\nB=2\nA=hunter2",
                3,
                "A is set twice, first on line 1",
            ),
            ("TOOLQ_A=hunter2", 1, "reserved"),
            ("A='hunter2\0'", 1, "NUL"),
        ] {
            let errors = parse_env_file(text).unwrap_err();
            let [error] = errors.as_slice() else {
                panic!("{text:?}: {errors:?}");
            };
            assert_eq!(error.line, line, "{text:?}");
            assert!(error.message.contains(part), "{text:?}: {error:?}");
            let said = format!("{} {}", error.message, error.hint);
            assert!(!said.contains("hunter"), "{said}");
        }
        let errors = parse_env_file("a b\nA=1\nc d\n").unwrap_err();
        let lines: Vec<usize> = errors.iter().map(|error| error.line).collect();
        assert_eq!(lines, [1, 3]);
    }
}
