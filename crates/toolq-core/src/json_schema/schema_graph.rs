//! The graph of which schema leads to which, by nesting or by reference. It shows how much work an input may cause
//! before any input arrives.

use std::collections::{BTreeSet, HashMap};

use jsonschema::{Draft, Registry};
use serde_json::{Map, Value};

use crate::json_schema::library::{SchemaLibrary, meta_schema_root};
use crate::json_schema::subschemas::{
    BASE_URI, SchemaError, Subschema, find_references, find_subschemas,
};

/// The schemas of a document and of the meta-schemas that it reaches, by number; the root is 0.
#[derive(Debug)]
pub(crate) struct SchemaGraph {
    /// The schemas that each schema leads to.
    edges: Vec<Vec<usize>>,
    /// The schemas that references lead to.
    targets: BTreeSet<usize>,
    /// The schemas that are part of a meta-schema of JSON Schema.
    of_meta_schemas: BTreeSet<usize>,
}

impl SchemaGraph {
    /// Builds the graph of `schema` and the meta-schemas that it reaches; returns `None` if it has no references at all.
    ///
    /// # Errors
    /// The references that don't resolve.
    pub(crate) fn build(
        schema: &Value,
        draft: Draft,
        library: &SchemaLibrary,
    ) -> Result<Option<Self>, Vec<SchemaError>> {
        let subschemas = library.find_all_subschemas(schema);
        if find_references(&subschemas).next().is_none() {
            return Ok(None);
        }
        let own_count = find_subschemas(schema, BASE_URI, draft).len();
        let registry = build_registry(schema, draft, library)
            .map_err(|error| vec![SchemaError::new("", error.to_string())])?;
        let numbered = subschemas.iter().enumerate();
        let of_meta_schemas = numbered
            .filter(|(_, subschema)| meta_schema_root(subschema.base.as_str()).is_some())
            .map(|(number, _)| number);
        let mut graph = Self {
            edges: vec![Vec::new(); subschemas.len()],
            targets: BTreeSet::new(),
            of_meta_schemas: of_meta_schemas.collect(),
        };
        for (number, subschema) in subschemas.iter().enumerate() {
            if let Some(parent) = subschema.parent {
                graph.edges[parent].push(number);
            }
        }
        let errors = graph.add_references(&subschemas, own_count, &registry);
        if errors.is_empty() {
            Ok(Some(graph))
        } else {
            Err(errors)
        }
    }

    /// Adds the targets of all references; returns those that don't resolve. The first `own_count` subschemas belong to
    /// the schema itself, the others to meta-schemas.
    fn add_references(
        &mut self,
        subschemas: &[Subschema<'_>],
        own_count: usize,
        registry: &Registry<'_>,
    ) -> Vec<SchemaError> {
        let numbers = number_subschemas(subschemas);
        let mut errors = Vec::new();
        for reference in find_references(subschemas) {
            let number = numbers[&std::ptr::from_ref(reference.subschema.schema)];
            let base = jsonschema::uri::from_str(reference.subschema.base.as_str());
            match base.and_then(|base| registry.resolver(base).lookup(reference.text)) {
                Ok(resolved) => {
                    let target = resolved.contents().as_object().map(std::ptr::from_ref);
                    if let Some(target) = target.and_then(|target| numbers.get(&target)) {
                        self.edges[number].push(*target);
                        self.targets.insert(*target);
                    }
                }
                Err(error) => {
                    let pointer = if number < own_count {
                        reference.pointer()
                    } else {
                        String::new()
                    };
                    let message = format!("`{}` doesn't resolve: {error}", reference.text);
                    errors.push(SchemaError::new(pointer, message));
                }
            }
        }
        errors
    }

    /// Counts the schemas after every reference is replaced by its target, stopping at those that lead back.
    pub(crate) fn count_unfolded_schemas(&self) -> u64 {
        self.count_paths(0, 1)
    }

    /// Returns the largest number of ways in which a schema leads back to itself. Above 1, the work that an input can
    /// cause multiplies with each level of nesting. Meta-schemas lead back to themselves in many ways, but only in one for
    /// each value of an input.
    pub(crate) fn max_growth(&self) -> u64 {
        self.targets
            .difference(&self.of_meta_schemas)
            .map(|target| self.count_paths(*target, 0))
            .max()
            .unwrap_or(0)
    }

    /// Counts the paths from `start`: 1 for each path back to it, plus `weight` for every schema on the way, once per
    /// path there. A path ends where it would enter a cycle.
    fn count_paths(&self, start: usize, weight: u64) -> u64 {
        let mut counts: Vec<Option<u64>> = vec![None; self.edges.len()];
        counts[start] = Some(1);
        let mut stack = vec![(start, 0, weight)];
        while let Some((number, next, sum)) = stack.pop() {
            let Some(&target) = self.edges[number].get(next) else {
                counts[number] = Some(sum);
                continue;
            };
            if let Some(found) = counts[target] {
                stack.push((number, next + 1, sum.saturating_add(found)));
            } else {
                counts[target] = Some(weight);
                stack.push((number, next, sum));
                stack.push((target, 0, weight));
            }
        }
        counts[start].unwrap_or(0)
    }
}

/// Returns the number of each schema, by its address in memory.
fn number_subschemas(subschemas: &[Subschema<'_>]) -> HashMap<*const Map<String, Value>, usize> {
    let numbered = subschemas.iter().enumerate();
    numbered
        .map(|(number, subschema)| (std::ptr::from_ref(subschema.schema), number))
        .collect()
}

fn build_registry<'r>(
    schema: &'r Value,
    draft: Draft,
    library: &'r SchemaLibrary,
) -> Result<Registry<'r>, jsonschema::ReferencingError> {
    let mut builder = Registry::new()
        .draft(draft)
        .add(BASE_URI, draft.create_resource_ref(schema))?;
    for (address, meta_schema) in &library.meta_schemas {
        let draft = draft.detect(meta_schema);
        builder = builder.add(address, draft.create_resource_ref(meta_schema))?;
    }
    builder.prepare()
}
