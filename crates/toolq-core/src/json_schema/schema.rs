//! Compiles schemas, and validates inputs against them.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::OnceLock;

use jsonschema::{Draft, PatternOptions, ValidationOptions, Validator};
use serde_json::Value;
use url::Url;

use crate::json::{Input, InvalidInput};
use crate::json_schema::defaults::SchemaDefaults;
use crate::json_schema::exact_keywords::{InexactNumbers, with_exact_keywords};
use crate::json_schema::library::{self, ALL_META_SCHEMAS, SchemaLibrary};
use crate::json_schema::problem_details::{self, TypeError};
use crate::json_schema::schema_errors::{self, find_schema_errors, find_unknown_drafts};
use crate::json_schema::schema_graph::{SchemaGraph, Subschema};
use crate::types::{FormatPolicy, ProblemDetail};

/// Maximum number of schemas, with references expanded, for which problems are listed.
const MAX_SCHEMAS_FOR_DETAILS: u64 = 1 << 16;
/// Maximum number of paths through a schema that listing the problems of one input may take.
const MAX_PATHS_FOR_DETAILS: u64 = 4_096;

/// A compiled schema.
#[derive(Debug)]
pub struct CompiledSchema {
    source: Value,
    validator: Validator,
    /// Validates the few inputs with numbers that a float doesn't hold. Compiled on first use.
    exact_validator: OnceLock<Option<Validator>>,
    library: SchemaLibrary,
    formats: FormatPolicy,
    /// Maximum depth of an input whose problems are listed; a deeper input is only accepted or rejected.
    max_detail_depth: usize,
    /// The defaults of missing values; `None` if the schema declares no defaults.
    defaults: Option<SchemaDefaults>,
}

impl CompiledSchema {
    /// Compiles `schema`, in which `format` is a note.
    ///
    /// # Errors
    /// All of its errors, as from [`find_schema_errors`].
    pub fn compile(schema: &Value) -> Result<Self, Vec<SchemaError>> {
        Self::compile_with_formats(schema, FormatPolicy::Annotate)
    }

    /// Compiles `schema`, in which `format` does what `formats` says.
    ///
    /// # Errors
    /// All of its errors, as from [`find_schema_errors`].
    pub fn compile_with_formats(
        schema: &Value,
        formats: FormatPolicy,
    ) -> Result<Self, Vec<SchemaError>> {
        let (library, unreachable) = SchemaLibrary::load(schema);
        let draft = Draft::default().detect(schema);
        let graph = SchemaGraph::build(schema, draft, &library);
        let is_supported = draft != Draft::Unknown
            && unreachable.is_empty()
            && find_unknown_drafts(schema, draft).is_empty();
        let (true, Ok(graph)) = (is_supported, graph) else {
            return Err(find_schema_errors(schema));
        };
        let defaults = SchemaDefaults::find(schema, draft, &library, graph.as_ref());
        match validation_options(library.clone(), formats).build(schema) {
            Ok(validator) => Ok(Self {
                source: schema.clone(),
                validator,
                exact_validator: OnceLock::new(),
                library,
                formats,
                max_detail_depth: graph.as_ref().map_or(usize::MAX, max_detail_depth),
                defaults,
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

    /// Fills in the missing values that have a default. Returns `None` if there is nothing to fill in.
    ///
    /// # Errors
    /// With its defaults, the input would exceed the limits of an input.
    pub(crate) fn fill_defaults(&self, input: &Input) -> Result<Option<Input>, InvalidInput> {
        match &self.defaults {
            Some(defaults) => defaults.fill(input),
            None => Ok(None),
        }
    }

    /// Fills in all defaults where there is no value yet, even those that their own schemas reject.
    pub(crate) fn fill_all_defaults(&self) -> Option<Input> {
        let defaults = self.defaults.as_ref()?;
        let filled = defaults.fill_except(&Input::empty(), &HashSet::new());
        filled.ok().flatten()
    }

    /// Fills in the defaults that leave `input` valid; returns `None` if `input` isn't valid as it came. A default must
    /// not invalidate a valid input.
    pub(crate) fn fill_valid_defaults(&self, input: &Input) -> Option<Input> {
        let is_valid = |input: &Input| self.accepts_input(input, &input.to_value());
        let defaults = self.defaults.as_ref().filter(|_| is_valid(input))?;
        let filled = defaults.fill_valid(input, is_valid);
        Some(filled.unwrap_or_else(|| input.clone()))
    }

    /// Returns whether `input` is valid. Faster than listing its problems.
    pub fn accepts(&self, input: &Value) -> bool {
        self.validator.is_valid(input)
    }

    /// Returns whether `input` is valid; `tree` is its own tree. Numbers are judged by all of their digits.
    pub(crate) fn accepts_input(&self, input: &Input, tree: &Value) -> bool {
        let numbers = InexactNumbers::find(input, tree);
        if numbers.is_empty() {
            return self.accepts(tree);
        }
        let validator = self.exact_validator();
        numbers.scope(|| validator.is_some_and(|validator| validator.is_valid(tree)))
    }

    /// Lists every problem of `input`; `tree` is its own tree. Numbers are judged by all of their digits.
    pub(crate) fn input_problems(&self, input: &Input, tree: &Value) -> Vec<ProblemDetail> {
        let rounded = self.problem_details(tree);
        let numbers = InexactNumbers::find(input, tree);
        let Some(validator) = self.exact_validator().filter(|_| !numbers.is_empty()) else {
            return rounded;
        };
        if is_deeper_than(tree, self.max_detail_depth) {
            return vec![too_deep_problem()];
        }
        let exact = numbers
            .scope(|| problem_details::collect_problem_details(validator, &self.source, tree));
        // The exact keywords know less about alternatives, so they only speak where the others are wrong.
        if rounded.is_empty() || exact.is_empty() {
            exact
        } else {
            rounded
        }
    }

    fn exact_validator(&self) -> Option<&Validator> {
        self.exact_validator
            .get_or_init(|| {
                let options = validation_options(self.library.clone(), self.formats);
                with_exact_keywords(options).build(&self.source).ok()
            })
            .as_ref()
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

// One error of a declared schema.

/// Why toolq can't use a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    /// JSON pointer into the schema.
    pub pointer: String,
    /// What is wrong there, as one sentence without a final period.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl SchemaError {
    pub(crate) fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn at(self, pointer: String) -> Self {
        Self { pointer, ..self }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

// How schemas are compiled.

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

// References from a schema to others, and the addresses that they resolve to.

/// Keywords whose value is a reference.
pub(crate) const REFERENCE_KEYWORDS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// A reference and the schema that contains it.
#[derive(Clone, Copy)]
pub(crate) struct SchemaReference<'p, 'a> {
    pub(crate) subschema: &'p Subschema<'a>,
    pub(crate) keyword: &'static str,
    pub(crate) text: &'a str,
}

impl SchemaReference<'_, '_> {
    /// JSON pointer to the reference itself.
    pub(crate) fn pointer(&self) -> String {
        format!("{}/{}", self.subschema.pointer, self.keyword)
    }
}

/// Returns the references in `subschemas`.
pub(crate) fn find_references<'p, 'a>(
    subschemas: &'p [Subschema<'a>],
) -> impl Iterator<Item = SchemaReference<'p, 'a>> {
    subschemas.iter().flat_map(|subschema| {
        REFERENCE_KEYWORDS.into_iter().filter_map(move |keyword| {
            let text = subschema.schema.get(keyword)?.as_str()?;
            Some(SchemaReference {
                subschema,
                keyword,
                text,
            })
        })
    })
}

/// Returns the address of the document that `reference` points to.
pub(crate) fn resolve_target(base: &Rc<Url>, reference: &str) -> Result<Url, SchemaError> {
    let mut target = base.join(reference).map_err(|error| {
        SchemaError::new(
            "",
            format!("`{reference}` isn't a valid reference: {error}"),
        )
    })?;
    target.set_fragment(None);
    Ok(target)
}
