//! Resolves the elements of `argv`, and reports values that would become code or be refused as options.

use crate::template::{VariableMode, parse_with_marks};
use crate::tools_file::argv::{
    ArgRole, SCRIPT_VALUE_HINT, base_name, classify_wrapped_args, code_value_hint,
};
use crate::tools_file::resolve::context::ToolContext;
use crate::tools_file::resolve::option_values::{
    chooses_option, report_chosen_option, warn_about_leading_dash,
};
use crate::tools_file::resolve::placeholders::TemplatePolicy;
use crate::tools_file::resolve::plain_text::{accepts_only_integers, accepts_only_plain_text};
use crate::tools_file::resolve::schema_presence::{SchemaPresence, find_presence};
use crate::tools_file::spanned::{Field, Spanned};
use crate::types::{ArgumentTemplate, Span, Template};

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
    report_missing_program(argv, key, context);
    let texts: Vec<&str> = argv
        .iter()
        .map(|element| element.value().map_or("", String::as_str))
        .collect();
    let each = argv
        .iter()
        .zip(classify_wrapped_args(&texts, context.wrapper.as_ref()));
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
        arguments.push(resolve_element(element, role, &program, dashes, context));
    }
    let mut arguments = arguments.into_iter();
    let program = arguments.next()?.template;
    let mut program = place_program(program.sole_text()?, key, context);
    // A wrapper doesn't look beside tools.yaml.
    if context.wrapper.is_some() && program.contains('/') {
        let dir = context.diagnostics.sources().dir();
        program = dir.join(program).display().to_string();
    }
    Some((program, arguments.collect()))
}

fn report_missing_program(argv: &[Field<String>], key: Span, context: &mut ToolContext<'_, '_>) {
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
}

/// Resolves one element of the `argv` of `program`.
fn resolve_element(
    element: &Spanned<String>,
    role: ArgRole,
    program: &str,
    dashes: &[Vec<String>],
    context: &mut ToolContext<'_, '_>,
) -> ArgumentTemplate {
    check_no_nul(element, context);
    context.warn_about_tilde(element);
    let is_line_number = role == ArgRole::Code
        && matches!(program, "sed" | "gsed")
        && contains_only_integers(&element.value, context);
    let policy = match role {
        ArgRole::Code if is_line_number => TemplatePolicy::ARGUMENT,
        role => policy_for(role, program),
    };
    let template = context.resolve_template(element, policy);
    match role {
        ArgRole::Data if chooses_option(&template, context) => {
            report_chosen_option(element, context);
        }
        ArgRole::Data => {
            // A path never begins with `-`.
            if !context.warn_about_unconfined_path(element, &template)
                && !context.warn_about_fetched_file(element, &template, program)
            {
                warn_about_leading_dash(element, &template, dashes, context);
            }
        }
        ArgRole::PlainText => {
            require_plain_values(element, &template, program, false, context);
        }
        ArgRole::PlainTextOrPath => {
            require_plain_values(element, &template, program, true, context);
        }
        ArgRole::Program | ArgRole::Code | ArgRole::Script => {}
    }
    ArgumentTemplate {
        template,
        digits_only: is_line_number,
    }
}

/// Returns a program as it is found from the directory of tools.yaml: a relative path with a slash is relative to the
/// file that contains it.
pub(crate) fn place_program(program: &str, key: Span, context: &ToolContext<'_, '_>) -> String {
    let dir = context.diagnostics.sources().dir_of(key);
    let is_beside_file = program.contains('/') && !program.starts_with('/');
    if !is_beside_file || dir.as_os_str().is_empty() {
        return program.to_owned();
    }
    let below = program.trim_start_matches("./").trim_start_matches('/');
    format!("{}/{below}", dir.display())
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
