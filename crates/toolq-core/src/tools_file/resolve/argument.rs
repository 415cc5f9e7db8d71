//! Resolves the elements of `argv`, and reports values that would become code or be refused as options.

use serde_json::Value;

use crate::template::{VariableMode, parse_with_marks};
use crate::tools_file::argv::{
    ArgRole, SCRIPT_VALUE_HINT, base_name, classify_args, code_value_hint,
};
use crate::tools_file::resolve::context::ToolContext;
use crate::tools_file::resolve::leading_dash::may_start_with_dash;
use crate::tools_file::resolve::placeholders::TemplatePolicy;
use crate::tools_file::resolve::plain_text::{accepts_only_integers, accepts_only_plain_text};
use crate::tools_file::resolve::schema_presence::{SchemaPresence, allows_type, find_presence};
use crate::tools_file::spanned::{Field, Spanned};
use crate::types::{ArgumentTemplate, Span, Template, TemplatePart};

const PROGRAM_POLICY: TemplatePolicy = TemplatePolicy::ARGUMENT.without_values(
    "an input value can't name a program",
    "name the program here; declare one tool per program, or pass an `enum` value to a program that picks one",
);
const SCRIPT_POLICY: TemplatePolicy = TemplatePolicy::ARGUMENT.without_values(
    "an input value can't choose the file that an interpreter runs",
    SCRIPT_VALUE_HINT,
);

/// Returns the program and its arguments, or `None` if there is no program. `dashes` are the inputs that may begin with
/// `-`.
pub(crate) fn resolve_arguments(
    argv: &[Field<String>],
    key: Span,
    dashes: &[Vec<String>],
    context: &mut ToolContext<'_, '_>,
) -> Option<(String, Vec<ArgumentTemplate>)> {
    if argv
        .first()
        .is_none_or(|first| first.value().is_some_and(String::is_empty))
    {
        context.diagnostics.error(
            key,
            "there is no program to run",
            "empty",
            "name one: `[cat, --, \"{path}\"]`",
        );
    }
    let texts: Vec<&str> = argv
        .iter()
        .map(|element| element.value().map_or("", String::as_str))
        .collect();
    let each = argv.iter().zip(classify_args(&texts));
    let each: Vec<(&Spanned<String>, ArgRole)> = each
        .filter_map(|(element, role)| Some((element.spanned()?, role)))
        .collect();
    context.warn_about_shell_operators(&each);
    let mut arguments = Vec::with_capacity(argv.len());
    let mut program = String::new();
    for (element, role) in each {
        if role == ArgRole::Program {
            program = base_name(&element.value);
        }
        check_no_nul(element, context);
        context.warn_about_tilde(element);
        let is_line_number = role == ArgRole::Code
            && matches!(program.as_str(), "sed" | "gsed")
            && contains_only_integers(&element.value, context);
        let policy = match role {
            ArgRole::Code if is_line_number => TemplatePolicy::ARGUMENT,
            role => policy_for(role, &program),
        };
        let template = context.resolve_template(element, policy);
        match role {
            ArgRole::Data if chooses_option(&template, context) => {
                report_chosen_option(element, context);
            }
            ArgRole::Data => {
                // A path never begins with `-`.
                if !context.warn_about_unconfined_path(element, &template)
                    && !context.warn_about_fetched_file(element, &template, &program)
                {
                    warn_about_leading_dash(element, &template, dashes, context);
                }
            }
            ArgRole::PlainText => {
                require_plain_values(element, &template, &program, false, context);
            }
            ArgRole::PlainTextOrPath => {
                require_plain_values(element, &template, &program, true, context);
            }
            ArgRole::Program | ArgRole::Code | ArgRole::Script => {}
        }
        arguments.push(ArgumentTemplate {
            template,
            digits_only: is_line_number,
        });
    }
    context.warn_about_script_arguments(&texts, &arguments, argv);
    let mut arguments = arguments.into_iter();
    let program = arguments.next()?.template;
    Some((program.sole_text()?.to_owned(), arguments.collect()))
}

fn policy_for(role: ArgRole, program: &str) -> TemplatePolicy {
    match role {
        ArgRole::Program => PROGRAM_POLICY,
        ArgRole::Code => TemplatePolicy::for_code(
            "an input value can't be part of code that is run",
            code_value_hint(program),
        ),
        ArgRole::Script => SCRIPT_POLICY,
        ArgRole::PlainText | ArgRole::PlainTextOrPath | ArgRole::Data => TemplatePolicy::ARGUMENT,
    }
}

/// Whether the template contains values, and all of them are integers.
fn contains_only_integers(text: &str, context: &ToolContext<'_, '_>) -> bool {
    let template = parse_with_marks(text, VariableMode::Literal).template;
    let mut values = template.value_paths().peekable();
    values.peek().is_some()
        && values.all(|path| match find_presence(context.schema, path) {
            SchemaPresence::Required(schema) | SchemaPresence::Optional(schema) => {
                accepts_only_integers(schema)
            }
            _ => false,
        })
}

/// Reports a value that the program could read as more than data, unless the schema only accepts plain texts.
fn require_plain_values(
    element: &Spanned<String>,
    template: &Template,
    program: &str,
    path_suffices: bool,
    context: &mut ToolContext<'_, '_>,
) {
    let is_safe = |path: &[String]| {
        let is_path = context.paths.iter().any(|declared| declared == path);
        let is_plain = match find_presence(context.schema, path) {
            SchemaPresence::Required(schema) | SchemaPresence::Optional(schema) => {
                accepts_only_plain_text(schema)
            }
            // The placeholder itself is reported.
            SchemaPresence::Absent { .. } => true,
            SchemaPresence::Unknown => false,
        };
        is_plain || path_suffices && is_path
    };
    if template.value_paths().all(is_safe) {
        return;
    }
    context.diagnostics.error(
        element.span,
        format!(
            "an input value can't be an operand of `{program}`, which runs what some texts name"
        ),
        "an input value",
        code_value_hint(program),
    );
}

/// Whether the argument is `-` or `--` followed by a value that can be any text.
fn chooses_option(template: &Template, context: &ToolContext<'_, '_>) -> bool {
    let [
        TemplatePart::Text(text),
        TemplatePart::Value { path, .. },
        ..,
    ] = template.parts.as_slice()
    else {
        return false;
    };
    let is_free = match find_presence(context.schema, path) {
        SchemaPresence::Required(schema) | SchemaPresence::Optional(schema) => {
            !accepts_only_plain_text(schema)
        }
        SchemaPresence::Absent { .. } => false,
        SchemaPresence::Unknown => true,
    };
    matches!(text.as_str(), "-" | "--") && is_free
}

fn report_chosen_option(element: &Spanned<String>, context: &mut ToolContext<'_, '_>) {
    context.diagnostics.error(
        element.span,
        "an input value can't choose an option",
        "any text may stand behind this `-`",
        "write the option out here: `--name={x}`; or restrict the value with an `enum`, `type: integer`, or a `pattern` such as `^[a-z]$`",
    );
}

/// Warns about a value at the start of an argument that the schema lets begin with `-`: such a call is refused.
fn warn_about_leading_dash(
    element: &Spanned<String>,
    template: &Template,
    dashes: &[Vec<String>],
    context: &mut ToolContext<'_, '_>,
) {
    let Some(TemplatePart::Value { path, splat, .. }) = template.parts.first() else {
        return;
    };
    if dashes.contains(path) || context.paths.contains(path) {
        return;
    }
    let allows_dash = |schema: &Value| match schema.get("items") {
        Some(items) if *splat => may_start_with_dash(items),
        _ if *splat => allows_type(schema, "array"),
        _ => may_start_with_dash(schema),
    };
    if let SchemaPresence::Required(schema) | SchemaPresence::Optional(schema) =
        find_presence(context.schema, path)
        && allows_dash(schema)
    {
        let name = path.join(".");
        let restriction = if *splat {
            "a `pattern` for its items"
        } else {
            "a `pattern`, or `minimum: 0`,"
        };
        context.diagnostics.warning(
            element.span,
            format!("a call is refused if `{name}` begins with `-`, since the program could take it for an option"),
            "may begin with `-`",
            format!("write `--option={{{name}}}` if the program has such an option, or add {restriction} to the schema; if the program takes it as a value here, allow it with `dashes: [{name}]`"),
        );
    }
}

/// Warns about a name under `dashes` that no argument begins with.
pub(crate) fn warn_about_unused_dashes(
    dashes: &Field<Vec<Field<String>>>,
    arguments: &[ArgumentTemplate],
    context: &mut ToolContext<'_, '_>,
) {
    for name in dashes.items() {
        let begins_argument = arguments.iter().any(|argument| {
            let first = argument.template.parts.first();
            matches!(first, Some(TemplatePart::Value { path, .. }) if path.join(".") == name.value)
        });
        let is_path = context
            .paths
            .iter()
            .any(|path| path.join(".") == name.value);
        if begins_argument && !is_path {
            continue;
        }
        let (message, hint) = if is_path {
            (
                format!("`{}` is a path, so it never begins with `-`", name.value),
                "remove it from `dashes`: a file called `-x` is handed over as `./-x`",
            )
        } else {
            (
                format!("no argument begins with `{}`", name.value),
                "remove it: values in stdin, variables and behind other text may begin with `-` anyway",
            )
        };
        context
            .diagnostics
            .warning(name.span, message, "has no effect", hint);
    }
}

pub(crate) fn check_no_nul(text: &Spanned<String>, context: &mut ToolContext<'_, '_>) {
    if text.value.contains('\0') {
        context.diagnostics.error(
            text.span,
            "a NUL character can't be passed to a program",
            "",
            "remove it",
        );
    }
}
