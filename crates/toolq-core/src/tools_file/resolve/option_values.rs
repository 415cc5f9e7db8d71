//! Reports values that a program could take for an option.

use serde_json::Value;

use crate::tools_file::resolve::accepted_values::{accepts_only_plain_text, may_start_with_dash};
use crate::tools_file::resolve::context::ToolContext;
use crate::tools_file::resolve::schema_presence::{SchemaPresence, allows_type, find_presence};
use crate::tools_file::spanned::{Field, Spanned};
use crate::types::{Template, TemplatePart};

/// Whether the argument is `-` or `--` followed by a value that can be any text.
pub(crate) fn chooses_option(template: &Template, context: &ToolContext<'_, '_>) -> bool {
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

/// Reports an argument for which [`chooses_option`] holds.
pub(crate) fn report_chosen_option(element: &Spanned<String>, context: &mut ToolContext<'_, '_>) {
    context.diagnostics.error(
        element.span,
        "an input value can't choose an option",
        "any text may stand behind this `-`",
        "write the option out here: `--name={x}`; or restrict the value with an `enum`, `type: integer`, or a `pattern` such as `^[a-z]$`",
    );
}

/// Warns about a value at the start of an argument that the schema lets begin with `-`: such a call is refused.
pub(crate) fn warn_about_leading_dash(
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
        let restriction = match (*splat, allows_type(schema, "string")) {
            (true, _) => "the keyword `pattern` for its items",
            (false, true) => "the keyword `pattern`",
            (false, false) => "`minimum: 0`",
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
    arguments: &[Template],
    context: &mut ToolContext<'_, '_>,
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
                "remove it: values in stdin, variables and behind other text may begin with `-` anyway",
            )
        };
        context
            .diagnostics
            .warning(name.span, message, "has no effect", hint);
    }
}
