//! What is passed along while a file, or one of its tools, is resolved.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::json_schema::{find_invalid_defaults, find_schema_errors, find_unknown_keywords};
use crate::tools_file::sources::Diagnostics;
use crate::tools_file::yaml::YamlNode;
use crate::types::{CommandWrapper, FileProblem, Sandbox, Template};

/// What the checks of a file need.
pub(crate) struct CheckContext<'c> {
    pub(crate) tree: &'c YamlNode,
    pub(crate) dir: &'c Path,
    /// The files that hold schemas.
    pub(crate) schema_files: BTreeSet<PathBuf>,
    pub(crate) diagnostics: &'c mut Diagnostics,
}

/// Where a schema is: at these keys, or in the file that they name.
#[derive(Clone, Copy)]
pub(crate) struct SchemaPlace<'k> {
    pub(crate) keys: &'k [&'k str],
    pub(crate) file: Option<&'k str>,
}

impl SchemaPlace<'_> {
    /// Returns a message about the value at `pointer`. In another file, only words can say where that is.
    fn message(&self, pointer: &str, message: &str) -> String {
        match self.file {
            None => message.to_owned(),
            Some(file) if pointer.is_empty() => format!("in {file}: {message}"),
            Some(file) => format!("in {file} at {pointer}: {message}"),
        }
    }
}

impl CheckContext<'_> {
    /// Reports every error in the schema. Returns whether it is valid.
    pub(crate) fn check_schema(&mut self, schema: &Value, place: SchemaPlace<'_>) -> bool {
        let errors = find_schema_errors(schema);
        let is_valid = errors.is_empty();
        for error in errors {
            let span = self.tree.span_at(place.keys, &error.pointer);
            let message = place.message(&error.pointer, &error.message);
            let problem = FileProblem::error(span, message, "in this schema");
            self.diagnostics.push(match error.hint {
                Some(hint) => problem.with_hint(hint),
                None => problem,
            });
        }
        is_valid
    }

    /// Warns about defaults that the schema itself rejects.
    pub(crate) fn warn_about_invalid_defaults(&mut self, schema: &Value, place: SchemaPlace<'_>) {
        for detail in find_invalid_defaults(schema) {
            let name = detail.path.split('/').nth(1).unwrap_or_default();
            let pointer = format!("/properties/{name}/default");
            let message = format!(
                "the default violates the schema: {} {}",
                detail.path, detail.message
            );
            self.diagnostics.warning((self.tree.span_at(place.keys, &pointer), "not filled in where the value is missing"),
                place.message(&pointer, &message),
                "a call without this value runs without the default, or is refused if the value is required; change the \
                 default");
        }
    }

    /// Warns about keys in the schema that are almost keywords. JSON Schema treats all other unknown keys as
    /// annotations, and vendors use many.
    pub(crate) fn warn_about_misspelled_keywords(
        &mut self,
        schema: &Value,
        place: SchemaPlace<'_>,
    ) {
        for unknown in find_unknown_keywords(schema) {
            if let Some(suggestion) = unknown.suggestion {
                let message = format!(
                    "`{}` isn't a JSON Schema keyword, so it checks nothing",
                    unknown.key
                );
                self.diagnostics.warning(
                    (
                        self.tree.key_span_at(place.keys, &unknown.pointer),
                        "ignored",
                    ),
                    place.message(&unknown.pointer, &message),
                    format!("did you mean `{suggestion}`?"),
                );
            }
        }
    }
}

/// What resolving one tool, or one server, needs.
pub(crate) struct ToolContext<'c> {
    pub(crate) schema: &'c Value,
    /// Why there is no input, if nothing can depend on one.
    pub(crate) why_no_input: Option<&'static str>,
    /// The tool's `paths`.
    pub(crate) paths: Vec<Vec<String>>,
    /// Whether the tool says `paths: []`: no input of it needs to stay inside the root.
    pub(crate) has_no_paths: bool,
    pub(crate) programs: &'c ProgramDefaults,
    /// What the programs can reach.
    pub(crate) sandbox: Option<Sandbox>,
    /// What runs the programs.
    pub(crate) wrapper: Option<CommandWrapper>,
    pub(crate) diagnostics: &'c mut Diagnostics,
}

impl<'c> ToolContext<'c> {
    pub(crate) fn new(
        schema: &'c Value,
        programs: &'c ProgramDefaults,
        diagnostics: &'c mut Diagnostics,
    ) -> Self {
        Self {
            schema,
            why_no_input: None,
            paths: Vec::new(),
            has_no_paths: false,
            programs,
            sandbox: None,
            wrapper: None,
            diagnostics,
        }
    }
}

/// What `defaults` says about every program: those of commands, servers, `describe` and `probe`.
#[derive(Debug)]
pub(crate) struct ProgramDefaults {
    /// The root of the file, absolute.
    pub(crate) root: PathBuf,
    /// The working directory, absolute.
    pub(crate) cwd: PathBuf,
    pub(crate) env: Vec<(String, Template)>,
    pub(crate) pass_env: Vec<String>,
    pub(crate) wrapper: Option<CommandWrapper>,
}
