//! Compiles schemas, and validates inputs against them.

#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use jsonschema::{Draft, Validator};
use serde_json::Value;

use crate::json::{Input, InvalidInput};
use crate::json_schema::defaults::{fill_defaults, may_have_defaults, without_invalid_defaults};
use crate::json_schema::library::{SchemaLibrary, validation_options};
use crate::json_schema::problem_details::{self, ProblemDetail, TypeError};
use crate::json_schema::schema_errors::{self, find_schema_errors, find_unknown_drafts};
use crate::json_schema::schema_graph::SchemaGraph;
use crate::json_schema::subschemas::SchemaError;

/// Maximum number of schemas, with references expanded, for which problems are listed.
const MAX_SCHEMAS_FOR_DETAILS: u64 = 1 << 16;
/// Maximum number of paths through a schema that listing the problems of one input may take.
const MAX_PATHS_FOR_DETAILS: u64 = 4_096;

/// A compiled schema.
#[derive(Debug)]
pub struct CompiledSchema {
    source: Value,
    validator: Validator,
    /// Maximum depth of an input whose problems are listed; a deeper input is only accepted or rejected.
    max_detail_depth: usize,
    has_defaults: bool,
    /// The schema without the defaults that their own schemas reject.
    usable: OnceLock<Value>,
}

/// An input with the defaults of its schema, where they leave it valid.
pub(crate) struct FilledInput {
    pub(crate) input: Input,
    pub(crate) value: Value,
    pub(crate) is_valid: bool,
}

impl CompiledSchema {
    /// Compiles `schema`.
    ///
    /// # Errors
    /// All of its errors, as from [`find_schema_errors`].
    pub fn compile(schema: &Value) -> Result<Self, Vec<SchemaError>> {
        let (library, unreachable) = SchemaLibrary::load(schema);
        let draft = Draft::default().detect(schema);
        let graph = SchemaGraph::build(schema, draft, &library);
        let is_supported = draft != Draft::Unknown
            && unreachable.is_empty()
            && find_unknown_drafts(schema, draft).is_empty();
        let (true, Ok(graph)) = (is_supported, graph) else {
            return Err(find_schema_errors(schema));
        };
        match validation_options(library).build(schema) {
            Ok(validator) => Ok(Self {
                source: schema.clone(),
                validator,
                max_detail_depth: graph.as_ref().map_or(usize::MAX, max_detail_depth),
                has_defaults: may_have_defaults(schema),
                usable: OnceLock::new(),
            }),
            Err(error) => {
                let found = find_schema_errors(schema);
                let rest = || vec![schema_errors::from_build_error(&error, schema)];
                Err(if found.is_empty() { rest() } else { found })
            }
        }
    }

    /// Returns the schema, as it was declared.
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// Fills in the missing values that have a default: all of them or, if that isn't valid, those that their own schemas accept.
    /// An input that is valid only as it came stays so.
    ///
    /// # Errors
    /// With its defaults, the input would exceed the limits of an input.
    pub(crate) fn fill_defaults(&self, input: &Input) -> Result<FilledInput, InvalidInput> {
        let fill = |schema: &Value| {
            let filled = fill_defaults(schema, input)?;
            Ok(self.judge(filled.unwrap_or_else(|| input.clone())))
        };
        if !self.has_defaults {
            return Ok(self.judge(input.clone()));
        }
        let filled = fill(&self.source)?;
        if filled.is_valid {
            return Ok(filled);
        }
        let usable = || without_invalid_defaults(&self.source);
        let filled = fill(self.usable.get_or_init(usable))?;
        let own = Some(input).filter(|_| !filled.is_valid);
        let own = own.map(|input| self.judge(input.clone()));
        Ok(own.filter(|own| own.is_valid).unwrap_or(filled))
    }

    fn judge(&self, input: Input) -> FilledInput {
        let value = input.to_value();
        FilledInput {
            is_valid: self.accepts(&value),
            input,
            value,
        }
    }

    /// Returns whether `input` is valid. Faster than listing its problems.
    pub fn accepts(&self, input: &Value) -> bool {
        self.validator.is_valid(input)
    }

    /// Lists every problem of `input`, in the order of the schema; empty if it is valid.
    pub fn problem_details(&self, input: &Value) -> Vec<ProblemDetail> {
        if self.accepts(input) {
            return Vec::new();
        }
        if is_deeper_than(input, self.max_detail_depth) {
            return vec![too_deep_problem()];
        }
        problem_details::collect_problem_details(&self.validator, &self.source, input)
    }

    /// Finds the values of `input` with the wrong type.
    pub(crate) fn type_errors(&self, input: &Value) -> Vec<TypeError> {
        if is_deeper_than(input, self.max_detail_depth) {
            return Vec::new();
        }
        problem_details::find_type_errors(&self.validator, input)
    }
}

fn too_deep_problem() -> ProblemDetail {
    ProblemDetail::new(
        "",
        "violates the schema, and is nested too deeply to say where",
    )
}

/// Returns the maximum depth of an input whose problems can be listed. Validation takes linear time, but each problem
/// is reported once for every path that leads to it.
fn max_detail_depth(graph: &SchemaGraph) -> usize {
    if graph.count_unfolded_schemas() > MAX_SCHEMAS_FOR_DETAILS {
        return 0;
    }
    match graph.max_growth() {
        0 | 1 => usize::MAX,
        growth => MAX_PATHS_FOR_DETAILS.ilog(growth) as usize,
    }
}

/// Returns whether the arrays and objects of `value` are nested deeper than `levels`.
fn is_deeper_than(value: &Value, levels: usize) -> bool {
    let is_child_deeper = |value: &Value| is_deeper_than(value, levels - 1);
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(is_child_deeper),
        Value::Object(members) => levels == 0 || members.values().any(is_child_deeper),
        _ => false,
    }
}
