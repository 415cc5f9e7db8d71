//! Templates in tools.yaml: their syntax, and where their values may go.

use std::ops::Range;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::types::{Template, TemplatePart};

// Parses the text of a template into parts, and records where each one is. Which parts are allowed depends on where
// the template is used, so the caller checks that.

/// A template, and where everything in it is that isn't plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedTemplate {
    /// Its parts.
    pub template: Template,
    /// What isn't plain text, in order.
    pub marks: Vec<TemplateMark>,
}

/// Something in a template that a check may report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateMark {
    /// Byte range in the template's text.
    pub range: Range<usize>,
    /// What it is.
    pub kind: MarkKind,
}

/// What a mark is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkKind {
    /// The part with this index: a value or a variable.
    Part(usize),
    /// `{{name}` followed by another brace, probably meant for another template language.
    DoubleBraces,
    /// `${NAME}` where variables aren't expanded: it remains text.
    LiteralVariable,
    /// `${` that doesn't start a variable, where variables are expanded.
    InvalidVariable,
    /// `$NAME`, a shell variable: it remains text.
    ShellVariable,
    /// `{ name }` or `{name|filter}`, a placeholder of another template language: it remains text.
    ForeignPlaceholder,
}

/// Whether `${NAME}` is expanded as an environment variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableMode {
    /// It is.
    Expand,
    /// It stays text.
    Literal,
}

/// Parses a template in which environment variables are expanded, as in `env`, URLs, and bodies.
pub(crate) fn parse_template(text: &str) -> Template {
    parse_with_marks(text, VariableMode::Expand).template
}

/// Parses a template. This never fails: anything that doesn't have the form of a placeholder is literal text.
pub fn parse_with_marks(text: &str, variables: VariableMode) -> ParsedTemplate {
    let mut parser = TemplateParser {
        text,
        position: 0,
        pending_text: String::new(),
        parts: Vec::new(),
        marks: Vec::new(),
    };
    while let Some(literal_len) = text[parser.position..].find(['$', '{']) {
        parser.take_literal(literal_len);
        if text[parser.position..].starts_with('$') {
            parser.parse_dollar(variables);
        } else {
            parser.parse_brace();
        }
    }
    parser.take_literal(text.len() - parser.position);
    parser.flush_text();
    ParsedTemplate {
        template: Template {
            parts: parser.parts,
        },
        marks: parser.marks,
    }
}

struct TemplateParser<'t> {
    text: &'t str,
    position: usize,
    pending_text: String,
    parts: Vec<TemplatePart>,
    marks: Vec<TemplateMark>,
}

impl TemplateParser<'_> {
    /// Adds the next `len` bytes to the pending text verbatim.
    fn take_literal(&mut self, len: usize) {
        self.pending_text
            .push_str(&self.text[self.position..self.position + len]);
        self.position += len;
    }

    fn flush_text(&mut self) {
        if !self.pending_text.is_empty() {
            self.parts
                .push(TemplatePart::Text(std::mem::take(&mut self.pending_text)));
        }
    }

    fn add_mark(&mut self, len: usize, kind: MarkKind) {
        let range = self.position..self.position + len;
        self.marks.push(TemplateMark { range, kind });
    }

    fn push_part(&mut self, len: usize, part: TemplatePart) {
        self.flush_text();
        self.add_mark(len, MarkKind::Part(self.parts.len()));
        self.parts.push(part);
        self.position += len;
    }

    /// `$${` is the text `${`; `${NAME}` and `${NAME:-default}` are variables; any other dollar sign is literal.
    fn parse_dollar(&mut self, variables: VariableMode) {
        let rest = &self.text[self.position..];
        if rest.starts_with("$${") {
            self.position += 1;
            self.take_literal(2);
        } else if !rest.starts_with("${") {
            if let Some(len) = shell_variable_len(rest) {
                self.add_mark(len, MarkKind::ShellVariable);
            }
            self.take_literal(1);
        } else if let Some((len, part)) = parse_env_variable(rest) {
            if variables == VariableMode::Expand {
                self.push_part(len, part);
            } else {
                self.add_mark(len, MarkKind::LiteralVariable);
                self.take_literal(len);
            }
        } else {
            if variables == VariableMode::Expand {
                self.add_mark(2, MarkKind::InvalidVariable);
            }
            self.take_literal(2);
        }
    }

    /// `{{name}` is the text `{name}`; `{name}` is a value; any other brace is literal.
    fn parse_brace(&mut self) {
        let rest = &self.text[self.position..];
        if let Some((len, _)) = rest.strip_prefix('{').and_then(parse_placeholder) {
            if rest[1 + len..].starts_with('}') {
                self.add_mark(len + 2, MarkKind::DoubleBraces);
            }
            self.position += 1;
            self.take_literal(len);
        } else if let Some((len, part)) = parse_placeholder(rest) {
            self.push_part(len, part);
        } else {
            if let Some(len) = foreign_placeholder_len(rest) {
                self.add_mark(len, MarkKind::ForeignPlaceholder);
            }
            self.take_literal(1);
        }
    }
}

// What counts as a placeholder: values and variables, and what people write in their place by mistake.

/// Returns the length of `$NAME` at the start of `text`. Only uppercase names count, the convention for variables: `$1`
/// and `$x` have a meaning in many languages.
fn shell_variable_len(text: &str) -> Option<usize> {
    let name = text.strip_prefix('$')?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = &name[..name.find(|c| !is_part(c)).unwrap_or(name.len())];
    let is_capital = |c: char| !c.is_ascii_lowercase();
    let is_name = name.len() > 1 && is_variable_name(name) && name.chars().all(is_capital);
    is_name.then(|| 1 + name.len())
}

/// Returns the length of `{ name }`, `{name|filter}`, `{name!r}` or `{name[0]}` at the start of `text`.
fn foreign_placeholder_len(text: &str) -> Option<usize> {
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

/// Parses `${NAME}` or `${NAME:-default}` at the start of `text` into its length and part.
fn parse_env_variable(text: &str) -> Option<(usize, TemplatePart)> {
    let inner = text.strip_prefix("${")?;
    let inner = &inner[..inner.find('}')?];
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default.to_owned())),
        None => (inner, None),
    };
    let part = TemplatePart::Env {
        name: name.to_owned(),
        default,
    };
    is_variable_name(name).then_some((inner.len() + 3, part))
}

/// Whether `name` is a valid name of an environment variable in POSIX shells.
pub(crate) fn is_variable_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Parses `{a.b}`, `{a?}`, `{a...}` or `{a?...}` at the start of `text` into its length and part. Names consist of
/// letters, digits, `_` and `-`, and start with a letter or `_`, so `{3}`, `{a,b}`, and `{print $1}` aren't
/// placeholders.
fn parse_placeholder(text: &str) -> Option<(usize, TemplatePart)> {
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

// Where a value may end up, and what it must not contain there.

/// Everything except the unreserved characters of RFC 3986, section 2.3.
const URL_ESCAPE_SET: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The kind of place that a value is put into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TemplateTarget {
    /// An argument of a program.
    Argument,
    /// An environment variable of a program.
    EnvVariable,
    /// A part of a URL.
    Url,
    /// A header of a request.
    Header,
    /// Text without rules of its own: standard input, a query pair (encoded when it is sent), or a string in a JSON
    /// body.
    Text,
}

impl TemplateTarget {
    /// Encodes a value for this place.
    ///
    /// # Errors
    /// Why the value isn't allowed there, as the continuation of a sentence.
    pub(crate) fn encode(self, value: String) -> Result<String, &'static str> {
        match self {
            Self::Argument if value.contains('\0') => {
                Err("contains a NUL character, which an argument can't")
            }
            Self::EnvVariable if value.contains('\0') => {
                Err("contains a NUL character, which an environment variable can't")
            }
            Self::Header
                if !value
                    .bytes()
                    .all(|byte| matches!(byte, b' '..=b'~' | b'\t')) =>
            {
                Err("is sent in a header, which allows only visible ASCII, spaces and tabs")
            }
            Self::Url => Ok(utf8_percent_encode(&value, URL_ESCAPE_SET).to_string()),
            _ => Ok(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render_parts(text: &str, variables: VariableMode) -> Vec<String> {
        let parsed = parse_with_marks(text, variables);
        let part = |part: &TemplatePart| match part {
            TemplatePart::Text(text) => text.clone(),
            other => format!(
                "<{}>",
                Template {
                    parts: vec![other.clone()]
                }
            ),
        };
        parsed.template.parts.iter().map(part).collect()
    }

    #[test]
    fn only_well_formed_placeholders_are_parsed() {
        for (text, parts) in [
            ("{name}", vec!["<{name}>"]),
            ("a{x.y?}b{xs...}", vec!["a", "<{x.y?}>", "b", "<{xs...}>"]),
            ("{xs?...}{xs...?}", vec!["<{xs?...}>", "{xs...?}"]),
            ("{城市}{a-b}", vec!["<{城市}>", "<{a-b}>"]),
            (
                "{print $1} {sum: .a} {1} {a,b} {} { a } {a.} {a",
                vec!["{print $1} {sum: .a} {1} {a,b} {} { a } {a.} {a"],
            ),
            ("{{name}", vec!["{name}"]),
            ("{{{name}", vec!["{{name}"]),
            ("{{print}}", vec!["{print}}"]),
            ("${A}/${B:-x{y}", vec!["<${A}>", "/", "<${B:-x{y}>"]),
            ("$${A} $A $$", vec!["${A} $A $$"]),
            ("${1} ${a", vec!["${1} ${a"]),
            ("${{a}", vec!["${", "<{a}>"]),
            ("", vec![]),
        ] {
            let joined = render_parts(text, VariableMode::Expand).concat();
            assert_eq!(joined, parts.concat(), "{text}");
        }
        assert_eq!(
            render_parts("${A}{b}", VariableMode::Literal),
            ["${A}", "<{b}>"]
        );
    }

    #[test]
    fn a_template_has_the_parts_of_its_text() {
        let template = parse_template("a{b?}${C:-d}");
        assert_eq!(template.to_string(), "a{b?}${C:-d}");
        assert_eq!(template.parts.len(), 3);
    }

    #[test]
    fn marks_cover_the_text_they_describe() {
        let text = "ü {{a}} {{a} {b} ${C} ${1} $HOME/x $1 $x { a } {a.b|json} {a: 1} {print $1}";
        let parsed = parse_with_marks(text, VariableMode::Expand);
        let marks: Vec<(&str, MarkKind)> = parsed
            .marks
            .iter()
            .map(|mark| (&text[mark.range.clone()], mark.kind))
            .collect();
        assert_eq!(
            marks,
            [
                ("{{a}}", MarkKind::DoubleBraces),
                ("{b}", MarkKind::Part(1)),
                ("${C}", MarkKind::Part(3)),
                ("${", MarkKind::InvalidVariable),
                ("$HOME", MarkKind::ShellVariable),
                ("{ a }", MarkKind::ForeignPlaceholder),
                ("{a.b|json}", MarkKind::ForeignPlaceholder),
            ]
        );
    }
}

#[cfg(test)]
mod syntax_tests {
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
