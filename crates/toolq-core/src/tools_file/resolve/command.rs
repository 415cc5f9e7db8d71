//! Resolves `command` into a program with its arguments, input, environment and limits.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::template::parse_template;
use crate::tools_file::argv::{
    ArgRole, SCRIPT_VALUE_HINT, base_name, classify_args, code_value_hint,
};
use crate::tools_file::keys::{Argv, CommandFile, CommandForm, Defaults};
use crate::tools_file::resolve::context::ToolContext;
use crate::tools_file::resolve::env_variables;
use crate::tools_file::resolve::placeholders::TemplatePolicy;
use crate::tools_file::resolve::resource_limits;
use crate::tools_file::resolve::schema_presence::{
    SchemaPresence, find_presence, may_start_with_dash,
};
use crate::tools_file::spanned::{Field, Spanned};
use crate::types::{
    ArgumentTemplate, CommandBacking, Leftovers, Span, StdinSource, Template, TemplatePart,
};

const PROGRAM_POLICY: TemplatePolicy = TemplatePolicy::ARGUMENT.without_values(
    "an input value can't name a program",
    "name the program here; declare one tool per program, or pass an `enum` value to a program that picks one",
);
const SCRIPT_POLICY: TemplatePolicy = TemplatePolicy::ARGUMENT.without_values(
    "an input value can't choose the file that an interpreter runs",
    SCRIPT_VALUE_HINT,
);

/// Returns the backing, or `None` if there is no usable argument list.
pub(crate) fn resolve_command(
    form: &Spanned<CommandForm>,
    defaults: &Defaults,
    context: &mut ToolContext<'_, '_>,
) -> Option<CommandBacking> {
    let empty_table = CommandFile::default();
    let (file, argv) = match &form.value {
        CommandForm::List(argv) => (&empty_table, argv),
        CommandForm::Table(file) => {
            if file.argv.is_missing() {
                context.diagnostics.error(
                    form.key_span,
                    "`command` has no `argv`",
                    "no program",
                    "add the program and its arguments: `argv: [cat, --, \"{path}\"]`",
                );
            }
            (&**file, file.argv.value()?)
        }
    };
    resource_limits::check_resource_limits(&file.limits, context.diagnostics);
    let (program, arguments) = resolve_arguments(argv, form.key_span, context)?;
    Some(CommandBacking {
        program,
        arguments,
        stdin: resolve_stdin(&file.stdin, context),
        env: env_variables::resolve_env(file, context),
        pass_env: env_variables::resolve_pass_env(file, context),
        cwd: resolve_cwd(&file.cwd, context),
        success_exit: resolve_success_exit(&file.success_exit, context),
        leftovers: file
            .leftovers
            .value()
            .or(defaults.leftovers.value())
            .copied()
            .unwrap_or_default(),
        limits: resource_limits::resolve_resource_limits(&file.limits, &defaults.limits),
    })
}

/// Resolves `describe` or `probe`: a program that gets the variables, directory and limits of the tool's own command,
/// if there is one.
pub(crate) fn resolve_auxiliary_command(
    argv: &Spanned<Argv>,
    tool_command: Option<&CommandBacking>,
    context: &mut ToolContext<'_, '_>,
) -> Option<CommandBacking> {
    let (program, arguments) = resolve_arguments(&argv.value, argv.key_span, context)?;
    Some(CommandBacking {
        program,
        arguments,
        stdin: StdinSource::Input,
        env: tool_command
            .map(|command| command.env.clone())
            .unwrap_or_default(),
        pass_env: tool_command
            .map(|command| command.pass_env.clone())
            .unwrap_or_default(),
        cwd: tool_command.map_or_else(|| context.root.to_owned(), |command| command.cwd.clone()),
        success_exit: vec![0],
        leftovers: Leftovers::Kill,
        limits: tool_command
            .map(|command| command.limits)
            .unwrap_or_default(),
    })
}

/// Returns the program and its arguments, or `None` if there is no program.
fn resolve_arguments(
    argv: &[Field<String>],
    key: Span,
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
    let mut after_dashes = false;
    let mut arguments = Vec::with_capacity(argv.len());
    let mut program = String::new();
    for (element, role) in each {
        if role == ArgRole::Program {
            program = base_name(&element.value);
        }
        // The `--` of `env -- cat {x}` ends the options of `env`, not those of `cat`.
        after_dashes &= role != ArgRole::Program;
        let policy = match role {
            ArgRole::Program => PROGRAM_POLICY,
            ArgRole::Code => TemplatePolicy::for_code(
                "an input value can't be part of code that is run",
                code_value_hint(&program),
            ),
            ArgRole::Script => SCRIPT_POLICY,
            ArgRole::Data => TemplatePolicy::ARGUMENT,
        };
        arguments.push(resolve_argument(
            element,
            role,
            policy,
            after_dashes,
            context,
        ));
        after_dashes |= element.value == "--";
    }
    let mut arguments = arguments.into_iter();
    let program = arguments.next()?.template;
    Some((program.sole_text()?.to_owned(), arguments.collect()))
}

fn resolve_argument(
    element: &Spanned<String>,
    role: ArgRole,
    policy: TemplatePolicy,
    after_dashes: bool,
    context: &mut ToolContext<'_, '_>,
) -> ArgumentTemplate {
    check_no_nul(element, context);
    context.warn_about_tilde(element);
    let template = context.resolve_template(element, policy);
    if role == ArgRole::Data && !after_dashes {
        warn_about_leading_dash(element, &template, context);
    }
    ArgumentTemplate {
        template,
        after_double_dash: after_dashes,
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

/// Warns about a string at the start of an argument. If it begins with `-`, the program could take it for an option, so
/// the call is refused unless `--` comes first.
fn warn_about_leading_dash(
    element: &Spanned<String>,
    template: &Template,
    context: &mut ToolContext<'_, '_>,
) {
    let Some(TemplatePart::Value { path, splat, .. }) = template.parts.first() else {
        return;
    };
    let allows_dash = |schema: &Value| match schema.get("items") {
        Some(items) if *splat => may_start_with_dash(items),
        _ => *splat || may_start_with_dash(schema),
    };
    if let SchemaPresence::Required(schema) | SchemaPresence::Optional(schema) =
        find_presence(context.schema, path)
        && allows_dash(schema)
    {
        let name = path.join(".");
        context.diagnostics.warning(
            element.span,
            format!("a call is refused if `{name}` begins with `-`, since the program could take it for an option"),
            "no `--` before it",
            format!("put `--` before it if the program supports that, or write `--option={{{name}}}`"),
        );
    }
}

fn resolve_stdin(field: &Field<String>, context: &mut ToolContext<'_, '_>) -> StdinSource {
    match field.spanned() {
        None => StdinSource::Input,
        Some(word) if word.value == "input" => StdinSource::Input,
        Some(word) if word.value == "none" => StdinSource::None,
        Some(text) => StdinSource::Template(context.resolve_template(text, TemplatePolicy::TEXT)),
    }
}

/// Resolves the working directory, which must be inside the root.
fn resolve_cwd(field: &Field<String>, context: &mut ToolContext<'_, '_>) -> PathBuf {
    let Some(cwd) = field.spanned() else {
        return context.root.to_owned();
    };
    context.warn_about_tilde(cwd);
    let inside = is_inside(Path::new(&cwd.value), context.root);
    let is_constant = parse_template(&cwd.value).sole_text().is_some();
    if !is_constant {
        context.diagnostics.error(
            cwd.span,
            "`cwd` can't be a template",
            "must be constant",
            "write the directory out, or pass the value as an argument",
        );
    } else if !inside {
        context.diagnostics.error(
            cwd.span,
            "`cwd` leads out of the root",
            "outside",
            "write a directory inside `root`",
        );
    }
    context.root.join(&cwd.value).components().collect()
}

fn is_inside(cwd: &Path, root: &Path) -> bool {
    let relative = if cwd.is_absolute() {
        match cwd.strip_prefix(root) {
            Ok(relative) => relative,
            Err(_) => return false,
        }
    } else {
        cwd
    };
    let mut depth = 0_usize;
    relative.components().all(|component| match component {
        Component::ParentDir => depth.checked_sub(1).map(|less| depth = less).is_some(),
        Component::Normal(_) => {
            depth += 1;
            true
        }
        _ => true,
    })
}

fn resolve_success_exit(
    field: &Field<Vec<Field<i32>>>,
    context: &mut ToolContext<'_, '_>,
) -> Vec<i32> {
    if field.is_missing() {
        return vec![0];
    }
    for code in field
        .items()
        .filter(|code| !(0..=255).contains(&code.value))
    {
        context.diagnostics.error(
            code.span,
            format!("{} isn't an exit code", code.value),
            "",
            "exit codes are 0 to 255",
        );
    }
    field.items().map(|code| code.value).collect()
}
