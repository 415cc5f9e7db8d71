//! Resolves the schema that the output of a tool must match.

use std::sync::Arc;

use crate::json_schema::CompiledSchema;
use crate::tools_file::keys::ToolFile;
use crate::tools_file::resolve::context::{CheckContext, SchemaPlace};
use crate::types::OutputKind;

/// Returns the compiled schema of the tool's output. Returns `None` if there is no schema, or if it can't be used.
pub(crate) fn resolve_output_schema(
    name: &str,
    tool: &ToolFile,
    output: OutputKind,
    context: &mut CheckContext<'_, '_>,
) -> Option<Arc<CompiledSchema>> {
    let schema = tool.output_schema.spanned()?;
    if let Some(agent) = tool.agent.spanned() {
        context.diagnostics.error(
            agent.key_span,
            "an agent answers with text, which `output_schema` can't check",
            "",
            "remove `output_schema`",
        );
        return None;
    }
    if output != OutputKind::Json {
        context.diagnostics.error(
            schema.key_span,
            "`output_schema` is only for `output: json`",
            "",
            "write `output: json` next to it",
        );
        return None;
    }
    let keys = ["tools", name, "output_schema"];
    let place = SchemaPlace {
        keys: &keys,
        file: None,
    };
    if !context.check_schema(&schema.value, place) {
        return None;
    }
    context.warn_about_misspelled_keywords(&schema.value, place);
    CompiledSchema::compile(&schema.value).ok().map(Arc::new)
}
