//! Resolves the environment of a command, so that no value from the input can choose what runs.

use crate::template::is_variable_name;
use crate::tools_file::argv::is_steering_variable;
use crate::tools_file::keys::CommandFile;
use crate::tools_file::resolve::argument::check_no_nul;
use crate::tools_file::resolve::context::ToolContext;
use crate::tools_file::resolve::placeholders::TemplatePolicy;
use crate::tools_file::spanned::{Field, SpannedTable};
use crate::types::{Span, Template};

const STEERING_POLICY: TemplatePolicy = TemplatePolicy::WITH_VARIABLES.without_values(
    "an input value can't set this variable, which decides what programs run",
    "pass the value in a variable with another name",
);

const DEFAULT_POLICY: TemplatePolicy = TemplatePolicy::WITH_VARIABLES.without_values(
    "a default can't contain a value from the input of a call",
    "set this variable in `env` of the tool",
);

/// Resolves `env`. Names are constant, and variables that decide what runs can't contain values from the input.
pub(crate) fn resolve_env(
    file: &CommandFile,
    context: &mut ToolContext<'_, '_>,
) -> Vec<(String, Template)> {
    let mut variables = Vec::new();
    for (name, value) in file.env.entries() {
        check_variable_name(name, value.key_span, context);
        check_no_nul(value, context);
        let policy = if is_steering_variable(name) {
            STEERING_POLICY
        } else {
            TemplatePolicy::WITH_VARIABLES
        };
        context.warn_about_tilde(value);
        let template = context.resolve_template(value, policy);
        context.warn_about_unconfined_path(value, &template);
        variables.push((name.to_owned(), template));
    }
    variables
}

/// Resolves `env` of `defaults`, which is the same for every call.
pub(crate) fn resolve_default_env(
    field: &Field<SpannedTable<String>>,
    context: &mut ToolContext<'_, '_>,
) -> Vec<(String, Template)> {
    let mut variables = Vec::new();
    for (name, value) in field.entries() {
        check_variable_name(name, value.key_span, context);
        check_no_nul(value, context);
        context.warn_about_tilde(value);
        let template = context.resolve_template(value, DEFAULT_POLICY);
        variables.push((name.to_owned(), template));
    }
    variables
}

/// Resolves `pass_env`, which consists of names only.
pub(crate) fn resolve_pass_env(
    field: &Field<Vec<Field<String>>>,
    context: &mut ToolContext<'_, '_>,
) -> Vec<String> {
    let mut names = Vec::new();
    for name in field.items() {
        check_variable_name(&name.value, name.span, context);
        names.push(name.value.clone());
    }
    names
}

/// Reports a name that is invalid or reserved.
fn check_variable_name(name: &str, span: Span, context: &mut ToolContext<'_, '_>) {
    if !is_variable_name(name) {
        context.diagnostics.error(
            span,
            format!("`{name}` isn't a valid name for an environment variable"),
            "letters, digits and `_` only",
            "names are constant; only values can be templates",
        );
    } else if name.starts_with("TOOLQ_") {
        context.diagnostics.error(
            span,
            format!("`{name}` is reserved"),
            "toolq sets the variables with this prefix",
            "use another name",
        );
    }
}
