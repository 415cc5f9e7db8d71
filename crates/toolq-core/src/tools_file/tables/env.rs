//! Environment variables: `env` and `pass_env` of a program, so that no value from the input can choose what runs, `env_file`,
//! and the variables whose values are secrets.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use crate::template::is_variable_name;
use crate::text::decode_text;
use crate::tools_file::argv::programs::is_steering_variable;
use crate::tools_file::context::{CheckContext, Diagnostics, ProgramDefaults, ToolContext};
use crate::tools_file::spanned::{Field, SpannedTable};
use crate::tools_file::tables::arguments::check_no_nul;
use crate::tools_file::tables::http::ServersByName;
use crate::tools_file::templates::TemplatePolicy;
use crate::types::{Backing, EnvFile, Span, Template, Tool};

const STEERING_POLICY: TemplatePolicy = TemplatePolicy::WITH_VARIABLES.without_values(
    "an input value can't set this variable, which decides what programs run",
    "pass the value in a variable with another name",
);

const DEFAULT_POLICY: TemplatePolicy = TemplatePolicy::WITH_VARIABLES.without_values(
    "a default can't contain a value from the input of a call",
    "set this variable in `env` of the tool",
);

/// Resolves `env`. Names are constant, and variables that decide what runs can't contain values from the input.
pub(crate) fn resolve_env(
    field: &Field<SpannedTable<String>>,
    context: &mut ToolContext<'_>,
) -> Vec<(String, Template)> {
    resolve_variables(field, context, |name| {
        if is_steering_variable(name) {
            STEERING_POLICY
        } else {
            TemplatePolicy::WITH_VARIABLES
        }
    })
}

/// Resolves `env` of `defaults`, which is the same for every call.
pub(crate) fn resolve_default_env(
    field: &Field<SpannedTable<String>>,
    context: &mut ToolContext<'_>,
) -> Vec<(String, Template)> {
    resolve_variables(field, context, |_| DEFAULT_POLICY)
}

fn resolve_variables(
    field: &Field<SpannedTable<String>>,
    context: &mut ToolContext<'_>,
    policy_for: fn(&str) -> TemplatePolicy,
) -> Vec<(String, Template)> {
    let mut variables = Vec::new();
    for (name, value) in field.entries() {
        check_variable_name(name, value.key_span, context);
        check_no_nul(value, context);
        context.warn_about_tilde(value);
        let template = context.resolve_template(value, policy_for(name));
        context.warn_about_unconfined_path(value, &template);
        variables.push((name.to_owned(), template));
    }
    variables
}

/// Resolves `pass_env`, which consists of names only.
pub(crate) fn resolve_pass_env(
    field: &Field<Vec<Field<String>>>,
    context: &mut ToolContext<'_>,
) -> Vec<String> {
    let mut names = Vec::new();
    for name in field.items() {
        check_variable_name(&name.value, name.span, context);
        names.push(name.value.clone());
    }
    names
}

/// Reports a name that is invalid or reserved.
fn check_variable_name(name: &str, span: Span, context: &mut ToolContext<'_>) {
    if !is_variable_name(name) {
        context.diagnostics.error(
            (span, "letters, digits and `_` only"),
            format!("`{name}` isn't a valid name for an environment variable"),
            "names are constant; only values can be templates",
        );
    } else if name.starts_with("TOOLQ_") {
        context.diagnostics.error(
            (span, "toolq sets the variables with this prefix"),
            format!("`{name}` is reserved"),
            "use another name",
        );
    }
}

/// Maximum size of the file. The environment of a program is smaller anyway.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Returns the variables of the file. Problems with its lines are reported where tools.yaml names it, since its text mustn't be
/// shown.
pub(crate) fn resolve_env_file(field: &Field<String>, context: &mut CheckContext<'_>) -> EnvFile {
    let Some(name) = field.spanned() else {
        return EnvFile::default();
    };
    let path = context.dir.join(Path::new(&name.value));
    let shown = &name.value;
    let variables = match read_regular_file(&path, MAX_FILE_BYTES) {
        Ok(text) => parse_env_file(&text),
        Err(why) => {
            let message = format!("{shown} can't be read: {why}");
            let hint = "create it, or remove `env_file`; its path is relative to tools.yaml";
            context.diagnostics.error(name.span, message, hint);
            return EnvFile::default();
        }
    };
    let variables = variables.unwrap_or_else(|errors| {
        for error in errors {
            let message = format!("{shown}, line {}: {}", error.line, error.message);
            context.diagnostics.error(name.span, message, error.hint);
        }
        BTreeMap::new()
    });
    EnvFile {
        path: Some(path),
        variables,
    }
}

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
fn parse_env_file(text: &str) -> Result<BTreeMap<String, String>, Vec<EnvLineError>> {
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

// Finds the environment variables whose values are secrets, and so are masked in all output.

/// Returns the names under `secrets`, and those of the variables that are used for credentials.
pub(crate) fn resolve_secrets(
    field: &Field<Vec<Field<String>>>,
    defaults: &ProgramDefaults,
    tools: &[Arc<Tool>],
    servers: &ServersByName,
    diagnostics: &mut Diagnostics,
) -> Vec<String> {
    let mut names = BTreeSet::new();
    for name in field.items() {
        if !is_variable_name(&name.value) {
            diagnostics.error(
                name.span,
                format!(
                    "`{}` isn't a valid name for an environment variable",
                    name.value
                ),
                "`secrets` lists the names of variables, never their values",
            );
        }
        names.insert(name.value.clone());
    }
    let backings = tools.iter().filter_map(|tool| tool.backing.as_ref());
    for template in backings.flat_map(confidential_templates) {
        names.extend(template.env_names().map(str::to_owned));
    }
    // Also for a `probe` whose tool has no command.
    for (_, template) in &defaults.env {
        names.extend(template.env_names().map(str::to_owned));
    }
    let server_secrets = servers.values().flat_map(|server| server.secret_names());
    names.extend(server_secrets.map(str::to_owned));
    names.into_iter().collect()
}

/// Returns the templates whose variables are secrets.
fn confidential_templates(backing: &Backing) -> Vec<&Template> {
    fn values(pairs: &[(String, Template)]) -> impl Iterator<Item = &Template> {
        pairs.iter().map(|(_, template)| template)
    }
    match backing {
        Backing::Command(command) => values(&command.env).collect(),
        Backing::Http(http) => values(&http.headers).chain(values(&http.query)).collect(),
        Backing::Agent(agent) => agent.api_key.iter().chain(values(&agent.headers)).collect(),
        // The variables of a server belong to the server, not to one of its tools.
        Backing::Mcp(_) | Backing::Builtin(_) | Backing::Host => Vec::new(),
    }
}

/// Returns the text of a file of up to `max_bytes` bytes, or why it can't be used.
pub(crate) fn read_regular_file(path: &Path, max_bytes: u64) -> Result<String, String> {
    let found = path.metadata().map_err(|error| error.to_string())?;
    // A named pipe would never end.
    if !found.is_file() {
        return Err("it isn't a regular file".to_owned());
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(max_bytes + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > max_bytes {
        return Err(format!("it is larger than {} MiB", max_bytes >> 20));
    }
    decode_text(bytes)
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
