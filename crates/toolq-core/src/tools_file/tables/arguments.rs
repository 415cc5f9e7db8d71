//! The elements of `argv` and `wrapper`. Reports values that would become code or be refused as options.

use serde_json::Value;

use crate::tools_file::argv::programs::{base_name, find_replacement};
use crate::tools_file::argv::roles::{
    ArgRole, classify_wrapped_args, find_code_wrapper, find_handover,
};
use crate::tools_file::context::ToolContext;
use crate::tools_file::input_values::{
    SchemaPresence, accepts_only_plain_text, allows_type, find_listed, find_presence,
    may_start_with_dash,
};
use crate::tools_file::spanned::{Field, Spanned};
use crate::tools_file::tables::values::Argv;
use crate::tools_file::templates::TemplatePolicy;
use crate::types::{CommandWrapper, Span, Template, TemplatePart};

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
    context: &mut ToolContext<'_>,
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
    let mut is_behind_code = false;
    for (element, role) in elements {
        match role {
            ArgRole::Program => program = base_name(&element.value),
            ArgRole::Code | ArgRole::Script => is_behind_code = true,
            _ => {}
        }
        let place = (&*program, is_behind_code);
        arguments.push(resolve_element(element, role, place, dashes, context));
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

fn report_missing_program(argv: &[Field<String>], key: Span, context: &mut ToolContext<'_>) {
    if argv
        .first()
        .is_none_or(|first| first.value().is_some_and(String::is_empty))
    {
        context.diagnostics.error(
            (key, "empty"),
            "there is no program to run",
            "name one: `[cat, --, \"{path}\"]`",
        );
    }
}

/// Resolves one element of the `argv` of `program`. After code or a script, it is read by that.
fn resolve_element(
    element: &Spanned<String>,
    role: ArgRole,
    (program, is_behind_code): (&str, bool),
    dashes: &[Vec<String>],
    context: &mut ToolContext<'_>,
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
        ArgRole::Data => {
            warn_about_leading_dash(element, &template, (dashes, is_behind_code), context);
        }
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
fn place_program(program: &str, key: Span, context: &ToolContext<'_>) -> String {
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
    context: &mut ToolContext<'_>,
) {
    let is_safe = |path: &[String]| {
        let is_path = context.paths.iter().any(|declared| declared == path);
        is_plain_value(path, context) || path_suffices && is_path
    };
    if template.value_paths().all(is_safe) {
        return;
    }
    context.diagnostics.error(
        (element.span, "an input value"),
        format!(
            "an input value can't be an operand of `{program}`, which runs what some texts name"
        ),
        find_replacement(program),
    );
}

/// Whether the schema only accepts plain texts for a value. One that no input can have is reported where it is used.
fn is_plain_value(path: &[String], context: &ToolContext<'_>) -> bool {
    match find_presence(context.schema, path) {
        SchemaPresence::Required(schema) | SchemaPresence::Optional(schema) => {
            accepts_only_plain_text(schema)
        }
        SchemaPresence::Absent { .. } => true,
        SchemaPresence::Unknown => false,
    }
}

pub(crate) fn check_no_nul(text: &Spanned<String>, context: &mut ToolContext<'_>) {
    if text.value.contains('\0') {
        context.diagnostics.error(
            text.span,
            "a NUL character can't be passed to a program",
            "remove it",
        );
    }
}

/// Whether the argument is `-` or `--` followed by a value that can be any text.
fn chooses_option(template: &Template, context: &ToolContext<'_>) -> bool {
    let [
        TemplatePart::Text(text),
        TemplatePart::Value { path, .. },
        ..,
    ] = template.parts.as_slice()
    else {
        return false;
    };
    matches!(text.as_str(), "-" | "--") && !is_plain_value(path, context)
}

/// Reports an argument for which [`chooses_option`] holds.
fn report_chosen_option(element: &Spanned<String>, context: &mut ToolContext<'_>) {
    context.diagnostics.error(
        (element.span, "any text may follow this `-`"),
        "an input value can't choose an option",
        "write the option out here: `--name={x}`; or restrict the value with an `enum`, `type: integer`, or a `pattern` such as `^[a-z]$`",
    );
}

/// Warns about a value at the start of an argument that the schema lets begin with `-`: such a call is refused.
fn warn_about_leading_dash(
    element: &Spanned<String>,
    template: &Template,
    (dashes, is_behind_code): (&[Vec<String>], bool),
    context: &mut ToolContext<'_>,
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
    if let Some(schema) = find_listed(context.schema, path)
        && allows_dash(schema)
    {
        let name = path.join(".");
        let restriction = match (*splat, allows_type(schema, "string")) {
            (true, _) => "a `pattern` that excludes a leading `-`, such as `^[^-]`, for its items",
            (false, true) => "a `pattern` that excludes a leading `-`, such as `^[^-]`,",
            (false, false) => "`minimum: 0`",
        };
        let (who, hint) = if is_behind_code {
            (
                "what the script starts",
                format!(
                    "add {restriction} to the schema; or have the script take it as a value, as `grep -- \"$1\"` does, then allow it inside `command: {{argv: …, dashes: [{name}]}}`"
                ),
            )
        } else {
            (
                "the program",
                format!(
                    "write `--option={{{name}}}` if the program has such an option, or add {restriction} to the schema; if the program takes it as a value here, allow it inside `command: {{argv: …, dashes: [{name}]}}`"
                ),
            )
        };
        let message = format!(
            "a call is refused if `{name}` begins with `-`, since {who} could take it for an option"
        );
        context
            .diagnostics
            .warning((element.span, "may begin with `-`"), message, hint);
    }
}

/// Warns about a name under `dashes` that no argument begins with.
pub(crate) fn warn_about_unused_dashes(
    dashes: &Field<Vec<Field<String>>>,
    arguments: &[Template],
    context: &mut ToolContext<'_>,
) {
    for name in dashes.items() {
        let begins_argument = arguments.iter().any(|argument| {
            let first = argument.parts.first();
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
                "remove it: values in stdin, variables and after other text may begin with `-` anyway",
            )
        };
        context
            .diagnostics
            .warning((name.span, "has no effect"), message, hint);
    }
}

const WRAPPER_POLICY: TemplatePolicy = TemplatePolicy::ARGUMENT.without_values(
    "a wrapper can't contain a value from the input",
    "it decides how everything runs; pass the value as an argument of `command`",
);

/// Returns the wrapper, or that of `defaults` if the key is missing. An empty list means no wrapper.
pub(crate) fn resolve_wrapper(
    field: &Field<Argv>,
    context: &mut ToolContext<'_>,
) -> Option<CommandWrapper> {
    let Some(list) = field.spanned() else {
        return context.programs.wrapper.clone();
    };
    let mut argv = Vec::new();
    for element in list.value.iter().filter_map(Field::spanned) {
        check_no_nul(element, context);
        context.warn_about_tilde(element);
        let template = context.resolve_template(element, WRAPPER_POLICY);
        argv.push(template.sole_text().unwrap_or_default().to_owned());
    }
    if argv.is_empty() {
        return None;
    }
    let texts: Vec<&str> = argv.iter().map(String::as_str).collect();
    if let Some(program) = find_code_wrapper(&texts) {
        context.diagnostics.error(
            list.key_span,
            format!("`{program}` makes shell text of its arguments, so a value could become code"),
            "name a wrapper that runs its arguments as they are, such as `[docker, exec, NAME]`; or make it the tool's own `command`, and pass values in `stdin`",
        );
    }
    let hands_over_to = find_handover(&texts);
    argv[0] = place_program(&argv[0], list.key_span, context);
    Some(CommandWrapper {
        argv,
        hands_over_to,
    })
}
