//! Parses the text of a template into parts, and records where each one is. Which parts are allowed depends on where
//! the template is used, so the caller checks that.

use std::ops::Range;

use crate::template::placeholders::{
    foreign_placeholder_len, parse_env_variable, parse_placeholder, shell_variable_len,
};
use crate::types::{Template, TemplatePart};

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
        } else if let Some(variable) = parse_env_variable(rest) {
            let len = variable.len;
            if variables == VariableMode::Expand {
                let part = TemplatePart::Env {
                    name: variable.name.to_owned(),
                    default: variable.default.map(str::to_owned),
                };
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
