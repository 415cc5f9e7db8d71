//! Resolves the elements of `argv`, and reports values that would become code or be refused as options.

use crate::tools_file::argv::{ArgRole, base_name, classify_wrapped_args, find_replacement};
use crate::tools_file::resolve::accepted_values::accepts_only_plain_text;
use crate::tools_file::resolve::context::ToolContext;
use crate::tools_file::resolve::option_values::{
    chooses_option, report_chosen_option, warn_about_leading_dash,
};
use crate::tools_file::resolve::placeholders::TemplatePolicy;
use crate::tools_file::resolve::schema_presence::{SchemaPresence, find_presence};
use crate::tools_file::spanned::{Field, Spanned};
use crate::types::{Span, Template};

const PROGRAM_POLICY: TemplatePolicy = TemplatePolicy::ARGUMENT.without_values(
    "an input value can't name a program",
    "name the program here; declare one tool per program, or pass an `enum` value to a program that picks one",
);
const SCRIPT_POLICY: TemplatePolicy = TemplatePolicy::ARGUMENT.without_values(
    "an input value can't choose the file that an interpreter runs",
    "name the file here and pass the value after it: `[python3, tool.py, \"{x}\"]`; if there are several files, declare one tool for each",
);

/// Returns the program and its arguments, or `None` if there is no program. `dashes` are the inputs that may begin with
/// `-`.
pub(crate) fn resolve_arguments(
    argv: &[Field<String>],
    key: Span,
    dashes: &[Vec<String>],
    context: &mut ToolContext<'_, '_>,
) -> Option<(String, Vec<Template>)> {
    report_missing_program(argv, key, context);
    let texts: Vec<&str> = argv
        .iter()
        .map(|element| element.value().map_or("", String::as_str))
        .collect();
    let roles = classify_wrapped_args(&texts, context.wrapper.as_ref());
    let elements: Vec<(&Spanned<String>, ArgRole)> = argv
        .iter()
        .zip(roles)
        .filter_map(|(element, role)| Some((element.spanned()?, role)))
        .collect();
    context.warn_about_shell_operators(&elements);
    let mut arguments = Vec::with_capacity(argv.len());
    let mut program = String::new();
    for (element, role) in elements {
        if role == ArgRole::Program {
            program = base_name(&element.value);
        }
        arguments.push(resolve_element(element, role, &program, dashes, context));
    }
    let mut arguments = arguments.into_iter();
    let program = arguments.next()?;
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
) -> Template {
    check_no_nul(element, context);
    context.warn_about_tilde(element);
    let template = context.resolve_template(element, policy_for(role, program));
    match role {
        ArgRole::Data if chooses_option(&template, context) => {
            report_chosen_option(element, context);
        }
        ArgRole::Data if context.warn_about_shell_value(element) => {}
        // A path never begins with `-`.
        ArgRole::Data if context.warn_about_unconfined_path(element, &template) => {}
        ArgRole::Data => warn_about_leading_dash(element, &template, dashes, context),
        ArgRole::PlainText | ArgRole::PlainTextOrPath => {
            let path_suffices = role == ArgRole::PlainTextOrPath;
            require_plain_values(element, &template, program, path_suffices, context);
        }
        ArgRole::Program | ArgRole::Code | ArgRole::Script | ArgRole::LoadedFile => {}
    }
    template
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
            find_replacement(program),
        ),
        ArgRole::Script | ArgRole::LoadedFile => SCRIPT_POLICY,
        ArgRole::PlainText | ArgRole::PlainTextOrPath | ArgRole::Data => TemplatePolicy::ARGUMENT,
    }
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
        find_replacement(program),
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
