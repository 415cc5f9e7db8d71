//! Resolves lists of names of inputs: `paths`, `dashes` and `once`.

use serde_json::Value;

use crate::template::parse_dotted_path;
use crate::text::suggest_name;
use crate::tools_file::resolve::context::ToolContext;
use crate::tools_file::resolve::schema_presence::{SchemaPresence, allows_type, find_presence};
use crate::tools_file::spanned::Spanned;

/// Returns the names, each split at its dots. A name that no input can have is an error, with `unknown_hint` if no
/// similar name exists.
pub(crate) fn resolve_value_names<'n>(
    dotted_names: impl Iterator<Item = &'n Spanned<String>>,
    unknown_hint: &str,
    context: &mut ToolContext<'_, '_>,
) -> Vec<Vec<String>> {
    let mut names = Vec::new();
    for dotted in dotted_names {
        let Some(path) = parse_dotted_path(&dotted.value) else {
            context.diagnostics.error(
                dotted.span,
                format!("`{}` isn't a valid name of an input", dotted.value),
                "",
                "write `path`, or `file.path` for a nested value",
            );
            continue;
        };
        // Where there is no input, the field itself is an error.
        if context.why_no_input.is_none()
            && let SchemaPresence::Absent { depth, known } = find_in_lists(context.schema, &path)
        {
            let hint = match suggest_name(&path[depth], known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => unknown_hint.to_owned(),
            };
            context.diagnostics.error(
                dotted.span,
                format!("the input has no `{}`", dotted.value),
                "not in `input_schema`",
                hint,
            );
        }
        names.push(path);
    }
    names
}

/// As [`find_presence`], where a list on the way stands for each of its elements.
fn find_in_lists<'s>(schema: &'s Value, path: &[String]) -> SchemaPresence<'s> {
    let mut found = find_presence(schema, path);
    let SchemaPresence::Absent { depth, .. } = found else {
        return found;
    };
    let (SchemaPresence::Required(list) | SchemaPresence::Optional(list)) =
        find_presence(schema, &path[..depth])
    else {
        return found;
    };
    if !allows_type(list, "array") {
        return found;
    }
    if let Some(items) = list.get("items") {
        found = find_in_lists(items, &path[depth..]);
        if let SchemaPresence::Absent { depth: total, .. } = &mut found {
            *total += depth;
        }
    } else if !allows_type(list, "object") {
        found = SchemaPresence::Unknown;
    }
    found
}
