//! Resolves lists of names of inputs: `paths`, `dashes` and `once`.

use crate::template::parse_dotted_path;
use crate::text::suggest_name;
use crate::tools_file::resolve::context::ToolContext;
use crate::tools_file::resolve::schema_presence::{SchemaPresence, find_presence};
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
            && let SchemaPresence::Absent { depth, known } = find_presence(context.schema, &path)
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
