//! Warns about inputs that look like paths and reach a program without being kept inside the root.

use serde_json::Value;

use crate::tools_file::resolve::{
    SchemaPresence, ToolContext, accepts_only_plain_text, find_presence,
};
use crate::tools_file::spanned::Spanned;
use crate::types::Template;

/// Names, and ends of names, of inputs that are usually paths.
const PATH_NAMES: [&str; 10] = [
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "filepath",
    "dir",
    "directory",
    "folder",
    "cwd",
];

impl ToolContext<'_, '_> {
    /// Warns about a value in an argument whose name or `format` says that it is a path, if it isn't named in `paths`.
    /// `paths: []` says that no path needs to stay inside the root. Returns whether there was a warning.
    pub(crate) fn warn_about_unconfined_path(
        &mut self,
        element: &Spanned<String>,
        template: &Template,
    ) -> bool {
        if self.has_no_paths {
            return false;
        }
        for path in template.value_paths() {
            let (SchemaPresence::Required(schema) | SchemaPresence::Optional(schema)) =
                find_presence(self.schema, path)
            else {
                continue;
            };
            let is_confined = self.paths.iter().any(|declared| declared == path);
            if is_confined || !looks_like_path(path, schema) || accepts_only_plain_text(schema) {
                continue;
            }
            let name = path.join(".");
            self.diagnostics.warning(
                element.span,
                format!("`{name}` may lead anywhere: it isn't kept inside the root"),
                "not in `paths`",
                format!("add `paths: [{name}]` to the tool; `paths: []` says that this is meant"),
            );
            return true;
        }
        false
    }
}

fn looks_like_path(path: &[String], schema: &Value) -> bool {
    let name = path.last().map(|name| name.to_ascii_lowercase());
    let name_is_path = name.is_some_and(|name| {
        PATH_NAMES.iter().any(|known| {
            name.strip_suffix(known)
                .is_some_and(|before| before.is_empty() || before.ends_with(['_', '-']))
        })
    });
    let items = schema.get("items").unwrap_or(schema);
    let format = items.get("format").and_then(Value::as_str);
    name_is_path || format == Some("path")
}
