//! Warns about inputs that look like paths and reach a program without being kept inside the root.

use serde_json::Value;

use crate::tools_file::resolve::{
    SchemaPresence, ToolContext, accepts_only_plain_text, find_presence,
};
use crate::tools_file::spanned::Spanned;
use crate::types::{Template, TemplatePart};

/// Names, and ends of names, of inputs that are usually paths.
const PATH_NAMES: [&str; 18] = [
    "path",
    "paths",
    "pathname",
    "file",
    "files",
    "filename",
    "filenames",
    "file_name",
    "filepath",
    "filepaths",
    "dir",
    "dirs",
    "directory",
    "directories",
    "folder",
    "folders",
    "workdir",
    "cwd",
];

impl ToolContext<'_, '_> {
    /// Warns about a value in an argument whose name or `format` says that it is a path, if it isn't named in `paths`.
    /// `paths: []` says that no path needs to stay inside the root, and a sandbox what any path can reach. Returns whether there was a warning.
    pub(crate) fn warn_about_unconfined_path(
        &mut self,
        element: &Spanned<String>,
        template: &Template,
    ) -> bool {
        if self.has_no_paths || self.sandbox.is_some() {
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
                format!("add `paths: [{name}]` to the tool; `paths: []` says that this is meant, and a `sandbox` limits what any path can reach"),
            );
            return true;
        }
        false
    }

    /// Warns about a value that begins an argument of curl: it could be `file:///etc/passwd`, or `@/etc/passwd` after
    /// `--data`. Returns whether there was a warning.
    pub(crate) fn warn_about_fetched_file(
        &mut self,
        element: &Spanned<String>,
        template: &Template,
        program: &str,
    ) -> bool {
        let Some(TemplatePart::Value { path, .. }) = template.parts.first() else {
            return false;
        };
        let is_restricted = self.has_no_paths
            || self.paths.contains(path)
            || match find_presence(self.schema, path) {
                SchemaPresence::Required(schema) | SchemaPresence::Optional(schema) => {
                    accepts_only_plain_text(schema) || schema.get("pattern").is_some()
                }
                _ => true,
            };
        if program != "curl" || is_restricted {
            return false;
        }
        self.diagnostics.warning(
            element.span,
            format!("`curl` reads the file that `{}` names, as in `file:///etc/passwd` or `@/etc/passwd`", path.join(".")),
            "may name a file",
            "use `http`, with `hosts` if the input is a whole URL; or add a `pattern` to the schema, such as `^https://`",
        );
        true
    }
}

fn looks_like_path(path: &[String], schema: &Value) -> bool {
    let name = path.last().map(|name| snake_case(name));
    let name_is_path = name.is_some_and(|name| {
        PATH_NAMES.iter().any(|known| {
            name.strip_suffix(known)
                .is_some_and(|before| before.is_empty() || before.ends_with(['_', '-']))
        })
    });
    let items = schema.get("items").unwrap_or(schema);
    let format = items.get("format").and_then(Value::as_str);
    name_is_path || matches!(format, Some("path" | "file-path" | "file" | "directory"))
}

/// Returns a name such as `inputFile` as `input_file`.
fn snake_case(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    let mut follows_lowercase = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && follows_lowercase {
            words.push('_');
        }
        follows_lowercase = c.is_ascii_lowercase() || c.is_ascii_digit();
        words.push(c.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_of_paths_are_recognized_in_every_style() {
        for name in [
            "path",
            "inputFile",
            "input_file",
            "fileName",
            "file_name",
            "filePath",
            "targetDirectory",
            "folders",
            "FILE",
            "out-dir",
        ] {
            assert!(looks_like_path(&[name.to_owned()], &json!({})), "{name}");
        }
        for name in ["profile", "xpath", "direction", "name", "filter", "endpath"] {
            assert!(!looks_like_path(&[name.to_owned()], &json!({})), "{name}");
        }
    }
}
