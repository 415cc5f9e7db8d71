//! The text of a template → its parts, and where each stands in the text. What a part may stand for is checked by whoever
//! knows the place of the template.

use std::ops::Range;

use crate::types::{Part, Template};

/// A template and the places of what is not plain text in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parsed {
    pub(crate) template: Template,
    pub(crate) marks: Vec<Mark>,
}

/// Something in a template that a check may speak of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Bytes of the template's text.
    pub(crate) range: Range<usize>,
    pub(crate) kind: MarkKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MarkKind {
    /// The part of this index: a value or a variable.
    Part(usize),
    /// `{{name}`, and another brace behind it: it was meant for another template language.
    DoubleBraces,
    /// `${NAME}` where variables are not read: it stays text.
    PlainVariable,
    /// `${` that begins no variable where variables are read.
    NoVariable,
    /// `$NAME`, as a shell would read it: it stays text.
    ShellVariable,
    /// `{ name }` or `{name|filter}`, as other template languages have it: it stays text.
    OtherPlaceholder,
}

/// Whether `${NAME}` is a variable of the environment here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variables {
    Read,
    Text,
}

/// The template that `text` is where variables of the environment are read, as in `env`, URLs and bodies.
pub fn parse_template(text: &str) -> Template {
    parse(text, Variables::Read).template
}

/// Reads a template. Every text is one: what has no form of a placeholder is itself.
pub(crate) fn parse(text: &str, variables: Variables) -> Parsed {
    let mut parser = Parser {
        text,
        at: 0,
        plain: String::new(),
        parts: Vec::new(),
        marks: Vec::new(),
    };
    while let Some(found) = text[parser.at..].find(['$', '{']) {
        parser.take(found);
        if text[parser.at..].starts_with('$') {
            parser.dollar(variables);
        } else {
            parser.brace();
        }
    }
    parser.take(text.len() - parser.at);
    parser.flush();
    Parsed {
        template: Template {
            parts: parser.parts,
        },
        marks: parser.marks,
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    plain: String,
    parts: Vec<Part>,
    marks: Vec<Mark>,
}

impl Parser<'_> {
    /// Takes the next `len` bytes as they are.
    fn take(&mut self, len: usize) {
        self.plain.push_str(&self.text[self.at..self.at + len]);
        self.at += len;
    }

    fn flush(&mut self) {
        if !self.plain.is_empty() {
            self.parts.push(Part::Text(std::mem::take(&mut self.plain)));
        }
    }

    fn mark(&mut self, len: usize, kind: MarkKind) {
        let range = self.at..self.at + len;
        self.marks.push(Mark { range, kind });
    }

    fn part(&mut self, len: usize, part: Part) {
        self.flush();
        self.mark(len, MarkKind::Part(self.parts.len()));
        self.parts.push(part);
        self.at += len;
    }

    /// `$${` is the text `${`; `${NAME}` and `${NAME:-default}` are variables; any other dollar is itself.
    fn dollar(&mut self, variables: Variables) {
        let rest = &self.text[self.at..];
        if rest.starts_with("$${") {
            self.at += 1;
            self.take(2);
        } else if !rest.starts_with("${") {
            if let Some(len) = shell_variable(rest) {
                self.mark(len, MarkKind::ShellVariable);
            }
            self.take(1);
        } else if let Some((len, name, default)) = variable(rest) {
            if variables == Variables::Read {
                let (name, default) = (name.to_owned(), default.map(str::to_owned));
                self.part(len, Part::Env { name, default });
            } else {
                self.mark(len, MarkKind::PlainVariable);
                self.take(len);
            }
        } else {
            if variables == Variables::Read {
                self.mark(2, MarkKind::NoVariable);
            }
            self.take(2);
        }
    }

    /// `{{name}` is the text `{name}`; `{name}` is a value; any other brace is itself.
    fn brace(&mut self) {
        let rest = &self.text[self.at..];
        if let Some((len, _)) = rest.strip_prefix('{').and_then(placeholder) {
            if rest[1 + len..].starts_with('}') {
                self.mark(len + 2, MarkKind::DoubleBraces);
            }
            self.at += 1;
            self.take(len);
        } else if let Some((len, part)) = placeholder(rest) {
            self.part(len, part);
        } else {
            if let Some(len) = other_placeholder(rest) {
                self.mark(len, MarkKind::OtherPlaceholder);
            }
            self.take(1);
        }
    }
}

/// The length of `$NAME` at the start of `text`. Only capitals, as variables are mostly written: `$1` and `$x` mean
/// something in many languages.
fn shell_variable(text: &str) -> Option<usize> {
    let name = text.strip_prefix('$')?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = &name[..name.find(|c| !is_part(c)).unwrap_or(name.len())];
    let is_capital = |c: char| !c.is_ascii_lowercase();
    let is_name = name.len() > 1 && is_variable_name(name) && name.chars().all(is_capital);
    is_name.then(|| 1 + name.len())
}

/// The length of `{ name }`, `{name|filter}`, `{name!r}` or `{name[0]}` at the start of `text`.
fn other_placeholder(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('{')?;
    let inner = &inner[..inner.find(['{', '}', '\n'])?];
    let is_closed = text[1 + inner.len()..].starts_with('}');
    (is_closed && other_name(inner).is_some()).then(|| inner.len() + 2)
}

/// The name in the inner text of such a placeholder.
pub(crate) fn other_name(inner: &str) -> Option<Vec<String>> {
    let name = inner.split(['|', '!', '[']).next()?.trim();
    dotted_path(name)
}

/// `${NAME}` or `${NAME:-default}` at the start of `text`: its length, name and default.
fn variable(text: &str) -> Option<(usize, &str, Option<&str>)> {
    let inner = text.strip_prefix("${")?;
    let inner = &inner[..inner.find('}')?];
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    is_variable_name(name).then_some((inner.len() + 3, name, default))
}

/// Whether this is a name of an environment variable as POSIX shells take it.
pub(crate) fn is_variable_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// `{a.b}`, `{a?}`, `{a...}` or `{a?...}` at the start of `text`: its length and what it stands for. Names have letters, digits,
/// `_` and `-`, and begin with a letter or `_`, so that `{3}`, `{a,b}` and `{print $1}` are none.
fn placeholder(text: &str) -> Option<(usize, Part)> {
    let inner = text.strip_prefix('{')?;
    let end = inner.find(|c: char| !(is_name_character(c) || matches!(c, '.' | '?')))?;
    if !inner[end..].starts_with('}') {
        return None;
    }
    let inner = &inner[..end];
    let unspread = inner.strip_suffix("...");
    let dotted = unspread.unwrap_or(inner);
    let required = dotted.strip_suffix('?');
    let (splat, optional) = (unspread.is_some(), required.is_some());
    let dotted = required.unwrap_or(dotted);
    let path = dotted_path(dotted)?;
    let part = Part::Value {
        path,
        optional,
        splat,
    };
    Some((inner.len() + 2, part))
}

fn is_name_character(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

/// `a.b` as `["a", "b"]`, where each is a name that a placeholder may have.
pub(crate) fn dotted_path(dotted: &str) -> Option<Vec<String>> {
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

    fn shown(text: &str, variables: Variables) -> Vec<String> {
        let parsed = parse(text, variables);
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
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
    fn only_the_form_is_a_placeholder() {
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
            let joined = shown(text, Variables::Read).concat();
            assert_eq!(joined, parts.concat(), "{text}");
        }
        assert_eq!(shown("${A}{b}", Variables::Text), ["${A}", "<{b}>"]);
    }

    #[test]
    fn marks_stand_under_what_they_mean() {
        let text = "ü {{a}} {b} ${C} ${1} $HOME/x $1 $x { a } {a.b|json} {a: 1} {print $1}";
        let parsed = parse(text, Variables::Read);
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
                ("${", MarkKind::NoVariable),
                ("$HOME", MarkKind::ShellVariable),
                ("{ a }", MarkKind::OtherPlaceholder),
                ("{a.b|json}", MarkKind::OtherPlaceholder),
            ]
        );
    }
}
