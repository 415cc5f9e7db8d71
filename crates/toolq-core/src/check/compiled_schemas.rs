//! The schemas of tools, compiled when they are first needed.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::check::valid_input::ValidInput;
use crate::json_schema::{CompiledSchema, SchemaError};
use crate::types::{ApprovalPolicy, SafetyPolicy, Tool, ToolsConfig};

/// Finds tools of a list, and has their schemas.
#[derive(Debug)]
pub(crate) struct ToolIndex {
    by_name: HashMap<String, usize>,
    schemas: Vec<CompiledSchemas>,
}

/// The compiled schemas of one tool.
#[derive(Debug, Default)]
pub(crate) struct CompiledSchemas {
    pub(crate) input: OnceLock<Result<CompiledSchema, Vec<SchemaError>>>,
    when: OnceLock<Option<CompiledSchema>>,
    approve_when: OnceLock<Option<CompiledSchema>>,
}

impl ToolIndex {
    pub(crate) fn new(tools: &[Arc<Tool>]) -> Self {
        let names = tools.iter().enumerate();
        Self {
            by_name: names
                .map(|(index, tool)| (tool.name.clone(), index))
                .collect(),
            schemas: tools.iter().map(|_| CompiledSchemas::default()).collect(),
        }
    }

    /// Finds a tool of the list that this was made for.
    pub(crate) fn find<'t>(
        &'t self,
        name: &str,
        tools: &'t [Arc<Tool>],
    ) -> Option<(&'t Arc<Tool>, &'t CompiledSchemas)> {
        let index = *self.by_name.get(name)?;
        Some((&tools[index], &self.schemas[index]))
    }
}

impl CompiledSchemas {
    /// Returns whether the input matches the `concurrency_safe.when` schema. A schema that doesn't compile matches
    /// nothing.
    pub(crate) fn matches_when(
        &self,
        safety: &SafetyPolicy,
        valid: &ValidInput,
        tools: &ToolsConfig,
    ) -> bool {
        let SafetyPolicy::When(schema) = safety else {
            return false;
        };
        let when = self
            .when
            .get_or_init(|| CompiledSchema::compile_with_formats(schema, tools.formats).ok());
        when.as_ref()
            .is_some_and(|when| when.accepts_input(&valid.input, &valid.value))
    }

    /// Returns whether a call with this input needs an approval. One whose schema doesn't compile does.
    pub(crate) fn needs_approval(
        &self,
        policy: &ApprovalPolicy,
        valid: &ValidInput,
        tools: &ToolsConfig,
    ) -> bool {
        let schema = match policy {
            ApprovalPolicy::Never => return false,
            ApprovalPolicy::Always => return true,
            ApprovalPolicy::When(schema) => schema,
        };
        let when = self
            .approve_when
            .get_or_init(|| CompiledSchema::compile_with_formats(schema, tools.formats).ok());
        when.as_ref()
            .is_none_or(|when| when.accepts_input(&valid.input, &valid.value))
    }
}
