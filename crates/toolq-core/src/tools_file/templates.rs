//! Parses the templates in the file and the names of values, and checks that they contain only what their position allows.

use crate::template::{MarkKind, VariableMode, parse_with_marks};
use crate::text::suggest_name;
use crate::tools_file::context::ToolContext;
use crate::tools_file::input_values::{SchemaPresence, allows_type, find_listed, find_presence};
use crate::tools_file::spanned::Spanned;
use crate::types::{Span, Template, TemplatePart};

/// Where an array may be spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SplatPlace {
    /// Nowhere: a template is one text.
    Nowhere,
    /// Where the placeholder is all of the template.
    Alone,
    /// Anywhere: the text around it is repeated.
    WithinText,
}

/// What a template may contain, depending on where it is used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TemplatePolicy {
    /// Whether `${NAME}` is expanded.
    pub(crate) variables: VariableMode,
    /// Where `{name...}` may become several elements.
    pub(crate) splat: SplatPlace,
    /// Why no value from the input is allowed, and what to do instead.
    value_refusal: Option<(&'static str, &'static str)>,
    /// Whether text that looks like a variable or placeholder is most likely meant literally.
    pub(crate) is_code: bool,
    /// Whether a missing value just leaves a gap.
    allows_missing: bool,
}

impl TemplatePolicy {
    /// Text without variables, such as standard input.
    pub(crate) const TEXT: Self = Self {
        variables: VariableMode::Literal,
        splat: SplatPlace::Nowhere,
        value_refusal: None,
        is_code: false,
        allows_missing: false,
    };
    /// An argument of a program.
    pub(crate) const ARGUMENT: Self = Self {
        splat: SplatPlace::Alone,
        ..Self::TEXT
    };
    /// Text that may contain environment variables, such as in `env` or in a request.
    pub(crate) const WITH_VARIABLES: Self = Self {
        variables: VariableMode::Expand,
        ..Self::TEXT
    };

    /// A path in a sandbox, which may be a list of paths.
    pub(crate) const SANDBOX_PATH: Self = Self {
        splat: SplatPlace::Alone,
        ..Self::WITH_VARIABLES
    };

    /// The name of a lock, or of one lock for each element of an array.
    pub(crate) const LOCK: Self = Self {
        splat: SplatPlace::WithinText,
        ..Self::TEXT
    };

    /// Progress text, in which values may be missing.
    pub(crate) const STATUS_TEXT: Self = Self {
        allows_missing: true,
        ..Self::TEXT
    };

    /// The same policy, but without values from the input.
    pub(crate) const fn without_values(self, why: &'static str, instead: &'static str) -> Self {
        Self {
            value_refusal: Some((why, instead)),
            ..self
        }
    }

    /// Code in another language, without values from the input.
    pub(crate) const fn for_code(why: &'static str, instead: &'static str) -> Self {
        Self {
            is_code: true,
            ..Self::ARGUMENT.without_values(why, instead)
        }
    }
}

/// A `{name}` in a template.
struct PlaceholderUse<'a> {
    span: Span,
    /// Its text in the template.
    source: &'a str,
    path: &'a [String],
    optional: bool,
    splat: bool,
    /// Whether the template consists of nothing else.
    is_whole_template: bool,
}

impl ToolContext<'_> {
    /// Parses the template, and checks it against the tool's schema and `policy`.
    pub(crate) fn resolve_template<T: AsRef<str>>(
        &mut self,
        spanned: &Spanned<T>,
        policy: TemplatePolicy,
    ) -> Template {
        let text = spanned.value.as_ref();
        let parsed = parse_with_marks(text, policy.variables);
        for mark in &parsed.marks {
            let span = self.diagnostics.span_within(spanned, &mark.range);
            let source = &text[mark.range.clone()];
            match mark.kind {
                MarkKind::Part(index) => {
                    if let Some(placeholder) = find_placeholder_use(span, source, &parsed.template, index) {
                        self.check_placeholder(&placeholder, policy);
                    }
                }
                MarkKind::DoubleBraces => self.warn_about_double_braces(span, source),
                MarkKind::LiteralVariable | MarkKind::ForeignPlaceholder if policy.is_code => {}
                MarkKind::LiteralVariable => self.diagnostics.warning(
                    (span, "not replaced"),
                    format!("`{source}` stays text: environment variables aren't expanded here"),
                    "pass the variable through `env` or `pass_env`; write `$${` if you mean the text `${`",
                ),
                MarkKind::ShellVariable => self.warn_about_shell_variable(spanned, mark, policy),
                MarkKind::ForeignPlaceholder => self.warn_about_foreign_placeholder(span, source),
                MarkKind::InvalidVariable => self.diagnostics.error(
                    (span, "neither `${NAME}` nor `${NAME:-default}`"),
                    "`${` doesn't begin a variable here",
                    "write `$${` for the text `${`",
                ),
            }
        }
        parsed.template
    }

    fn check_placeholder(&mut self, placeholder: &PlaceholderUse<'_>, policy: TemplatePolicy) {
        let presence = find_presence(self.schema, placeholder.path);
        if let SchemaPresence::Absent { depth, known } = &presence {
            self.report_unknown(placeholder, *depth, known);
        } else if let Some((why, instead)) = policy.value_refusal {
            let label = "an input value";
            self.diagnostics
                .error((placeholder.span, label), why, instead);
        } else if placeholder.splat {
            self.check_splat(placeholder, &presence, policy);
        }
        let may_be_missing =
            policy.value_refusal.is_some() || policy.allows_missing || placeholder.optional;
        if matches!(presence, SchemaPresence::Optional(_)) && !may_be_missing {
            self.warn_about_missing(placeholder);
        }
    }

    /// Checks that `...` is used to turn an array into several arguments, its only purpose.
    fn check_splat(
        &mut self,
        placeholder: &PlaceholderUse<'_>,
        presence: &SchemaPresence<'_>,
        policy: TemplatePolicy,
    ) {
        let stands_well = match policy.splat {
            SplatPlace::Nowhere => false,
            SplatPlace::Alone => placeholder.is_whole_template,
            SplatPlace::WithinText => true,
        };
        if !stands_well {
            self.diagnostics.error(
                (placeholder.span, "can't be spread here"),
                "`...` spreads an array over several arguments, and this isn't a whole argument",
                "without `...`, the array is written as JSON",
            );
        } else if let Some(schema) = presence.listed()
            && !allows_type(schema, "array")
        {
            self.diagnostics.error(
                (placeholder.span, "only arrays can be spread"),
                format!("`{}` isn't an array", placeholder.path.join(".")),
                "leave `...` out",
            );
        }
    }

    /// Reports a value that no input can have.
    fn report_unknown(&mut self, placeholder: &PlaceholderUse<'_>, depth: usize, known: &[&str]) {
        let PlaceholderUse { source, path, .. } = placeholder;
        let name = &path[depth];
        let escape_hint = format!("write `{{{source}` if you mean the text `{source}`");
        if let Some(why) = self.why_no_input {
            self.diagnostics
                .error((placeholder.span, "an input value"), why, escape_hint);
            return;
        }
        let message = if depth == 0 {
            format!("the input has no `{name}`")
        } else {
            format!("`{}` has no `{name}`", path[..depth].join("."))
        };
        let hint = match suggest_name(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? Or {escape_hint}"),
            None => escape_hint,
        };
        self.diagnostics
            .error((placeholder.span, "not in `input_schema`"), message, hint);
    }

    /// Warns about a value that an input may lack, which needs a `?`.
    fn warn_about_missing(&mut self, placeholder: &PlaceholderUse<'_>) {
        let name = placeholder.path.join(".");
        let spread = if placeholder.splat { "..." } else { "" };
        self.diagnostics.warning(
            (placeholder.span, "may be missing"),
            format!("`{name}` isn't required, but a call without it is refused"),
            format!(
                "write `{{{name}?{spread}}}` to leave this out then, or add `{name}` to `required`"
            ),
        );
    }

    /// Warns about two braces on each side, which other template languages use.
    fn warn_about_double_braces(&mut self, span: Span, source: &str) {
        let inner = source.trim_matches(['{', '}']);
        let path: Vec<String> = inner.split('.').map(str::to_owned).collect();
        if find_listed(self.schema, &path).is_some() {
            self.diagnostics.warning(
                (span, "not replaced"),
                format!("`{source}` is the text `{}`", &source[1..]),
                format!("write one brace on each side: `{{{inner}}}`"),
            );
        }
    }
}

/// Returns the part of `template` at `index`, if it is a value from the input.
fn find_placeholder_use<'a>(
    span: Span,
    source: &'a str,
    template: &'a Template,
    index: usize,
) -> Option<PlaceholderUse<'a>> {
    let TemplatePart::Value {
        path,
        optional,
        splat,
    } = &template.parts[index]
    else {
        return None;
    };
    Some(PlaceholderUse {
        span,
        source,
        path,
        optional: *optional,
        splat: *splat,
        is_whole_template: template.parts.len() == 1,
    })
}
