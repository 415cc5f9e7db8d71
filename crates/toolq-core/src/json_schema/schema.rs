//! JSON Schema: a declared `input_schema` → its faults, or a validator that names every problem of an input.
//!
//! Only this folder knows the validating crate. It opens no connection, reads no file outside the folder of
//! tools.yaml, matches patterns in linear time, and asserts no `format`.

#[cfg(test)]
mod tests;

use std::path::Path;

use jsonschema::{Draft, PatternOptions, ValidationOptions, Validator};
use serde_json::Value;

use crate::json_schema::details;
use crate::json_schema::faults;
use crate::json_schema::faults::schema_faults;
use crate::json_schema::library;
use crate::json_schema::library::Library;
use crate::json_schema::links::Links;
use crate::json_schema::type_errors;
use crate::json_schema::type_errors::Wanted;
use crate::types::Detail;

/// Bytes that a compiled pattern may take.
const PATTERN_BYTES: usize = 1 << 20;

/// Why a value is no schema that toolq takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaFault {
    /// JSON pointer into the schema.
    pub pointer: String,
    /// What is wrong there, in one sentence without a full stop.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl SchemaFault {
    pub(crate) fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Schemas, references unfolded, of which problems can be named.
const MAX_NAMED: u64 = 1 << 16;
/// Ways through a schema that naming the problems of one input may take.
const MAX_WAYS: u64 = 4_096;

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    declared: Value,
    validator: Validator,
    /// How deep an input may be for its problems to be named; a deeper one is only accepted or not.
    depth: usize,
}

impl Schema {
    /// Compiles `schema`; files that it refers to are read from `dir`, the folder of tools.yaml.
    ///
    /// # Errors
    /// All of its [`faults`].
    pub fn compile(schema: &Value, dir: &Path) -> Result<Self, Vec<SchemaFault>> {
        let (library, unreachable) = Library::of(schema, dir);
        let draft = Draft::default().detect(schema);
        let links = Links::of(schema, draft, &library);
        let known = draft != Draft::Unknown && unreachable.is_empty();
        let (true, Ok(links)) = (known, links) else {
            return Err(schema_faults(schema, dir));
        };
        match options(library).build(schema) {
            Ok(validator) => Ok(Self {
                declared: schema.clone(),
                validator,
                depth: links.as_ref().map_or(usize::MAX, nameable_depth),
            }),
            Err(error) => {
                let found = schema_faults(schema, dir);
                let rest = || vec![faults::of_build_error(&error, schema)];
                Err(if found.is_empty() { rest() } else { found })
            }
        }
    }

    /// Whether `input` is valid: the fast question.
    pub fn accepts(&self, input: &Value) -> bool {
        self.validator.is_valid(input)
    }

    /// Every problem of `input`, in the order of the schema; empty where it is valid.
    pub fn details(&self, input: &Value) -> Vec<Detail> {
        if self.accepts(input) {
            return Vec::new();
        }
        if is_deeper(input, self.depth) {
            let message = "breaks the schema, and is nested too deeply to tell where";
            return vec![Detail {
                path: String::new(),
                message: message.to_owned(),
            }];
        }
        details::details(&self.validator, &self.declared, input)
    }

    /// The places of `input` whose value has the wrong type.
    pub(crate) fn wanted(&self, input: &Value) -> Vec<Wanted> {
        if is_deeper(input, self.depth) {
            return Vec::new();
        }
        type_errors::wanted(&self.validator, input)
    }
}

/// The validator finds in linear time whether an input is valid, but tells each problem once for each way to it.
fn nameable_depth(links: &Links) -> usize {
    if links.unfolded() > MAX_NAMED {
        return 0;
    }
    match links.growth() {
        0 | 1 => usize::MAX,
        growth => MAX_WAYS.ilog(growth) as usize,
    }
}

/// Whether arrays and objects of `value` are nested deeper than `levels`.
fn is_deeper(value: &Value, levels: usize) -> bool {
    let below = |value: &Value| is_deeper(value, levels - 1);
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(below),
        Value::Object(members) => levels == 0 || members.values().any(below),
        _ => false,
    }
}

pub(crate) fn options(library: Library) -> ValidationOptions<'static> {
    jsonschema::options()
        .with_base_uri(library::BASE)
        .with_retriever(library)
        .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES))
        .should_validate_formats(false)
}
