//! How schemas are compiled.

use jsonschema::{PatternOptions, ValidationOptions};

use crate::json_schema::library::{self, SchemaLibrary};
use crate::json_schema::meta_schemas::ALL_META_SCHEMAS;
use crate::types::FormatPolicy;

/// Maximum size of a compiled pattern, in bytes.
pub(crate) const MAX_PATTERN_BYTES: usize = 1 << 20;

/// The options with which toolq compiles every schema; `library` provides the schemas that it refers to.
pub(crate) fn validation_options(
    library: SchemaLibrary,
    formats: FormatPolicy,
) -> ValidationOptions<'static> {
    let has_foreign_meta_schema = library.has_foreign_meta_schema();
    let options = jsonschema::options()
        .with_base_uri(library::BASE_URI)
        .with_retriever(library)
        .with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN_BYTES))
        .should_validate_formats(formats == FormatPolicy::Assert);
    // The registry is only built where it is needed.
    if has_foreign_meta_schema && let Some(registry) = ALL_META_SCHEMAS.as_ref() {
        return options.with_registry(registry);
    }
    options
}
