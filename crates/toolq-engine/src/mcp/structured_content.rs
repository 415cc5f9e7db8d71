//! The structured content of results: held against the output schemas that servers announced when they were locked, and
//! made readable for MCP clients.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;

use crate::output::{find_violation, strip_whitespace};
use redact::Mask;
use toolq_core::json_schema::CompiledSchema;
use toolq_core::types::ToolLock;
use toolq_mcp::CallToolResult;

/// What error messages call it.
const NOUN: &str = "structured content";

/// Reads structured content with the schemas that calls have needed, compiled once each.
#[derive(Debug)]
pub(crate) struct StructuredContentReader {
    mask: Arc<Mask>,
    /// By the digest of the tool's definition. `None` can't be compiled, and checks nothing.
    compiled: Mutex<HashMap<String, Option<Arc<CompiledSchema>>>>,
}

impl StructuredContentReader {
    pub(crate) fn new(mask: Arc<Mask>) -> Self {
        Self {
            mask,
            compiled: Mutex::default(),
        }
    }

    /// Returns the structured content of a result, with secrets masked. Returns `None` if it has none, if no schema
    /// describes it, or if it is longer than `max_bytes`: JSON can't be cut.
    ///
    /// # Errors
    /// How it violates the output schema of its tool.
    pub(crate) fn read(
        &self,
        lock: Option<&ToolLock>,
        result: &CallToolResult,
        max_bytes: u64,
    ) -> Result<Option<Box<RawValue>>, String> {
        let (Some(content), Some(lock)) = (&result.structured_content, lock) else {
            return Ok(None);
        };
        let Some(schema) = self.compile(lock) else {
            return Ok(None);
        };
        if let Some(violation) = find_violation(&schema, content.get(), NOUN) {
            return Err(self.mask.apply(&violation).into_owned());
        }
        let compact = strip_whitespace(content.get());
        if compact.len() as u64 > max_bytes {
            return Ok(None);
        }
        let masked = self.mask.apply_to_json(&compact).into_owned();
        if masked != compact && find_violation(&schema, &masked, NOUN).is_some() {
            return Err(
                "the structured content violates the output schema once its secrets are masked"
                    .to_owned(),
            );
        }
        Ok(RawValue::from_string(masked).ok())
    }

    fn compile(&self, lock: &ToolLock) -> Option<Arc<CompiledSchema>> {
        let schema = lock.definition.output_schema.as_ref()?;
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let known = compiled.entry(lock.sha256.clone()).or_insert_with(|| {
            let compiled = CompiledSchema::compile(schema);
            compiled.ok().map(Arc::new)
        });
        known.clone()
    }
}
