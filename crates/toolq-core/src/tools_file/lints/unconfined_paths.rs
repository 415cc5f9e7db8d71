//! Warns about inputs that look like paths and reach a program without being kept inside the root.

use crate::tools_file::resolve::{
    SchemaPresence, ToolContext, accepts_only_plain_text, find_presence,
};
use crate::tools_file::spanned::Spanned;
use crate::types::Template;

/// Names, and ends of names, of inputs that are usually paths.
const PATH_NAMES: [&str; 12] = [
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "filenames",
    "file_name",
    "filepath",
    "dir",
    "dirs",
    "directory",
    "directories",
];

impl ToolContext<'_, '_> {
    /// Warns about an input whose name says that it is a path, if it isn't named in `paths`. `paths: []` says that no path needs
    /// to stay inside the root, and a sandbox what any path can reach. Returns whether there was a warning.
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
            let is_path = path.last().is_some_and(|name| looks_like_path(name));
            if is_confined || !is_path || accepts_only_plain_text(schema) {
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
}

fn looks_like_path(name: &str) -> bool {
    let name = snake_case(name);
    PATH_NAMES.iter().any(|known| {
        let before = name.strip_suffix(known);
        before.is_some_and(|before| before.is_empty() || before.ends_with(['_', '-']))
    })
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
            "FILE",
            "out-dir",
        ] {
            assert!(looks_like_path(name), "{name}");
        }
        for name in ["profile", "xpath", "direction", "name", "filter", "endpath"] {
            assert!(!looks_like_path(name), "{name}");
        }
    }
}
