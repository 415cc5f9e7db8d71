//! Holds structured content against the output schemas that servers announced when they were locked.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::output::find_violation;
use toolq_core::json_schema::CompiledSchema;
use toolq_core::types::ToolLock;
use toolq_mcp::CallToolResult;

/// A schema of a server must not refer to files, so there are none where they are looked for.
const NO_DIRECTORY: &str = "/dev/null";

/// The schemas that calls have needed, compiled once each.
#[derive(Debug, Default)]
pub(crate) struct OutputSchemas {
    /// By the digest of the tool's definition. `None` can't be compiled, and checks nothing.
    compiled: Mutex<HashMap<String, Option<Arc<CompiledSchema>>>>,
}

impl OutputSchemas {
    /// Returns how the structured content of a result violates the output schema of its tool. A result without such
    /// content isn't checked: its text is what the model reads.
    pub(crate) fn find_violation(
        &self,
        lock: Option<&ToolLock>,
        result: &CallToolResult,
    ) -> Option<String> {
        let content = result.structured_content.as_ref()?;
        let schema = self.compile(lock?)?;
        find_violation(&schema, content.get(), "structured content")
    }

    fn compile(&self, lock: &ToolLock) -> Option<Arc<CompiledSchema>> {
        let schema = lock.definition.output_schema.as_ref()?;
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let known = compiled.entry(lock.sha256.clone()).or_insert_with(|| {
            let compiled = CompiledSchema::compile(schema, Path::new(NO_DIRECTORY));
            compiled.ok().map(Arc::new)
        });
        known.clone()
    }
}
