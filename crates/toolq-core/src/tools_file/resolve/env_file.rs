//! Reads the file that `env_file` names.

use std::collections::BTreeMap;
use std::path::Path;

use crate::tools_file::env_file::parse_env_file;
use crate::tools_file::resolve::context::CheckContext;
use crate::tools_file::resolve::regular_file::read_regular_file;
use crate::tools_file::spanned::Field;
use crate::types::EnvFile;

/// Maximum size of the file. The environment of a program is smaller anyway.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Returns the variables of the file. Problems with its lines are reported where tools.yaml names it, since its text mustn't be
/// shown.
pub(crate) fn resolve_env_file(
    field: &Field<String>,
    context: &mut CheckContext<'_, '_>,
) -> EnvFile {
    let Some(name) = field.spanned() else {
        return EnvFile::default();
    };
    let path = context.dir.join(Path::new(&name.value));
    let shown = &name.value;
    let variables = match read_regular_file(&path, MAX_FILE_BYTES) {
        Ok(text) => parse_env_file(&text),
        Err(why) => {
            let message = format!("{shown} can't be read: {why}");
            let hint = "create it, or remove `env_file`; its path is relative to tools.yaml";
            context.diagnostics.error(name.span, message, "", hint);
            return EnvFile::default();
        }
    };
    let variables = variables.unwrap_or_else(|errors| {
        for error in errors {
            let message = format!("{shown}, line {}: {}", error.line, error.message);
            context
                .diagnostics
                .error(name.span, message, "", error.hint);
        }
        BTreeMap::new()
    });
    EnvFile {
        path: Some(path),
        variables,
    }
}
