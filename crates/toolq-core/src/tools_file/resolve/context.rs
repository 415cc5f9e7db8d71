//! Context that is passed along while a file, or one of its tools, is resolved.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::json_schema::{find_invalid_defaults, find_schema_errors, find_unknown_keywords};
use crate::tools_file::keys::Argv;
use crate::tools_file::resolve::command_defaults::CommandDefaults;
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::resolve::wrapper::resolve_wrapper;
use crate::tools_file::spanned::Field;
use crate::tools_file::yaml::YamlNode;
use crate::types::{CommandWrapper, FileProblem, Sandbox};

/// What the checks of a file need.
pub(crate) struct CheckContext<'c, 't> {
    pub(crate) tree: &'c YamlNode,
    pub(crate) dir: &'c Path,
    /// The files that hold schemas.
    pub(crate) schema_files: BTreeSet<PathBuf>,
    pub(crate) diagnostics: &'c mut Diagnostics<'t>,
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

impl CheckContext<'_, '_> {
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
            self.diagnostics.warning(
                self.tree.span_at(place.keys, &pointer),
                place.message(&pointer, &message),
                "not filled in where the value is missing",
                "a call without this value runs without the default, or is refused if the value is required; change the \
                 default",
            );
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
                    self.tree.key_span_at(place.keys, &unknown.pointer),
                    place.message(&unknown.pointer, &message),
                    "ignored",
                    format!("did you mean `{suggestion}`?"),
                );
            }
        }
    }
}

impl ToolContext<'_, '_> {
    /// Sets what runs the programs: the wrapper in `field`, or that of `defaults`.
    pub(crate) fn set_wrapper(&mut self, field: &Field<Argv>) {
        let default = self.command_defaults.wrapper.as_ref();
        self.wrapper = resolve_wrapper(field, default, self);
    }
}

/// What resolving one tool needs.
pub(crate) struct ToolContext<'c, 't> {
    pub(crate) schema: &'c Value,
    /// Why there is no input, if nothing can depend on one.
    pub(crate) why_no_input: Option<&'static str>,
    pub(crate) root: &'c Path,
    /// The tool's `paths`.
    pub(crate) paths: Vec<Vec<String>>,
    /// Whether the tool says `paths: []`: no input of it needs to stay inside the root.
    pub(crate) has_no_paths: bool,
    /// What `defaults` says about every program.
    pub(crate) command_defaults: &'c CommandDefaults,
    /// What the programs of the tool, or the server, can reach.
    pub(crate) sandbox: Option<Sandbox>,
    /// What runs the programs.
    pub(crate) wrapper: Option<CommandWrapper>,
    pub(crate) diagnostics: &'c mut Diagnostics<'t>,
}
