//! A template of the file → its parts, once everything in it may stand where it stands.

use crate::template::{MarkKind, Variables, parse};
use crate::text::nearest;
use crate::tools_file::resolve::context::Scope;
use crate::tools_file::resolve::schema_presence::{Declared, declared, may_be};
use crate::tools_file::spanned::Placed;
use crate::types::{Part, Span, Template};

/// A kind of place for a template.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sink {
    /// Whether `${NAME}` is read.
    pub(crate) variables: Variables,
    /// Whether `{name...}` may become several.
    pub(crate) spreads: bool,
    /// Why no value of the input may stand here, and what to do instead.
    refused: Option<(&'static str, &'static str)>,
    /// Whether what looks like a variable or placeholder is most likely the author's own text.
    pub(crate) is_code: bool,
    /// Whether a missing value only leaves a gap.
    is_lenient: bool,
}

impl Sink {
    /// Text without variables: standard input, words for people.
    pub(crate) const TEXT: Self = Self {
        variables: Variables::Text,
        spreads: false,
        refused: None,
        is_code: false,
        is_lenient: false,
    };
    /// An argument of a program.
    pub(crate) const ARGUMENT: Self = Self {
        spreads: true,
        ..Self::TEXT
    };
    /// Text that may hold variables: of the environment, in a request.
    pub(crate) const WITH_VARIABLES: Self = Self {
        variables: Variables::Read,
        ..Self::TEXT
    };

    /// Words for people, who do without a missing value.
    pub(crate) const WORDS: Self = Self {
        is_lenient: true,
        ..Self::TEXT
    };

    /// The same where no value of the input may stand.
    pub(crate) const fn refusing(self, why: &'static str, instead: &'static str) -> Self {
        Self {
            refused: Some((why, instead)),
            ..self
        }
    }

    /// The text of a program in another language, where no value of the input may stand.
    pub(crate) const fn code(why: &'static str, instead: &'static str) -> Self {
        Self {
            is_code: true,
            ..Self::ARGUMENT.refusing(why, instead)
        }
    }
}

/// A `{name}` in a template.
struct Mention<'a> {
    span: Span,
    /// As it stands there.
    words: &'a str,
    path: &'a [String],
    optional: bool,
    splat: bool,
    /// The template is nothing else.
    alone: bool,
}

impl Scope<'_, '_> {
    /// The template in `placed`, checked against the tool's schema and the place where it stands.
    pub(crate) fn template<T: AsRef<str>>(&mut self, placed: &Placed<T>, sink: Sink) -> Template {
        let text = placed.value.as_ref();
        let parsed = parse(text, sink.variables);
        for mark in &parsed.marks {
            let span = self.findings.within(placed, &mark.range);
            let words = &text[mark.range.clone()];
            match mark.kind {
                MarkKind::Part(index) => {
                    if let Some(mention) = mention(span, words, &parsed.template, index) {
                        self.check(&mention, sink);
                    }
                }
                MarkKind::DoubleBraces => self.double_braces(span, words),
                MarkKind::PlainVariable | MarkKind::OtherPlaceholder if sink.is_code => {}
                MarkKind::PlainVariable => self.findings.warning(
                    span,
                    format!("`{words}` stays text: variables of the environment are not read here"),
                    "not replaced",
                    "give the program the variable by `env` or `pass_env`; `$${` says that the text is meant",
                ),
                MarkKind::ShellVariable => self.shell_variable(placed, mark, sink),
                MarkKind::OtherPlaceholder => self.other_placeholder(span, words),
                MarkKind::NoVariable => self.findings.error(
                    span,
                    "`${` begins no variable here",
                    "neither `${NAME}` nor `${NAME:-default}`",
                    "write `$${` for the text `${`",
                ),
            }
        }
        parsed.template
    }

    fn check(&mut self, mention: &Mention<'_>, sink: Sink) {
        let found = declared(self.schema, mention.path);
        if let Declared::Never { depth, known } = &found {
            self.unknown(mention, *depth, known);
        } else if let Some((why, instead)) = sink.refused {
            let label = "a value of the input";
            self.findings.error(mention.span, why, label, instead);
        } else if mention.splat {
            self.spread(mention, &found, sink);
        }
        let may_lack = sink.refused.is_some() || sink.is_lenient || mention.optional;
        if matches!(found, Declared::Optional(_)) && !may_lack {
            self.missing(mention);
        }
    }

    /// `...` makes several arguments of an array, and is nothing anywhere else.
    fn spread(&mut self, mention: &Mention<'_>, found: &Declared<'_>, sink: Sink) {
        if !(mention.alone && sink.spreads) {
            self.findings.error(
                mention.span,
                "`...` spreads an array over arguments, and this is not an argument by itself",
                "nothing to spread over",
                "without `...` the array stands here as JSON",
            );
        } else if let Declared::Always(schema) | Declared::Optional(schema) = found
            && !may_be(schema, "array")
        {
            self.findings.error(
                mention.span,
                format!("`{}` is no array", mention.path.join(".")),
                "only arrays can be spread",
                "leave `...` out",
            );
        }
    }

    /// No input has such a value.
    fn unknown(&mut self, mention: &Mention<'_>, depth: usize, known: &[&str]) {
        let Mention { words, path, .. } = mention;
        let name = &path[depth];
        let message = if depth == 0 {
            format!("the input has no `{name}`")
        } else {
            format!("`{}` has no `{name}`", path[..depth].join("."))
        };
        let escaped = format!("write `{{{words}` if the text `{words}` is meant");
        let hint = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? Or {escaped}"),
            None => escaped,
        };
        self.findings
            .error(mention.span, message, "not in `input_schema`", hint);
    }

    /// A value that an input may lack wants `?`.
    fn missing(&mut self, mention: &Mention<'_>) {
        let name = mention.path.join(".");
        let spread = if mention.splat { "..." } else { "" };
        self.findings.warning(
            mention.span,
            format!("`{name}` is not required, and a call without it is refused"),
            "may be missing",
            format!("write `{{{name}?{spread}}}` to leave this out, or add `{name}` to `required`"),
        );
    }

    /// Other template languages have two braces on each side.
    fn double_braces(&mut self, span: Span, words: &str) {
        let inner = words.trim_matches(['{', '}']);
        let path: Vec<String> = inner.split('.').map(str::to_owned).collect();
        if let Declared::Always(_) | Declared::Optional(_) = declared(self.schema, &path) {
            self.findings.warning(
                span,
                format!("`{words}` is the text `{}`", &words[1..]),
                "not replaced",
                format!("a value has one brace on each side: `{{{inner}}}`"),
            );
        }
    }
}

/// The part of `template` at `index`, where that is a value of the input.
fn mention<'a>(
    span: Span,
    words: &'a str,
    template: &'a Template,
    index: usize,
) -> Option<Mention<'a>> {
    let Part::Value {
        path,
        optional,
        splat,
    } = &template.parts[index]
    else {
        return None;
    };
    Some(Mention {
        span,
        words,
        path,
        optional: *optional,
        splat: *splat,
        alone: template.parts.len() == 1,
    })
}
