//! Fills in missing values from the schema's `default` keywords, before an input is validated.
//!
//! `properties`, `items`, `allOf` and `$ref` are followed. Below `anyOf`, `oneOf`, `not` and `if` nothing is filled in:
//! which of their schemas apply is known only after validation. Nor is anything from a meta-schema: its defaults only say
//! what a missing keyword means, and `"not": true` in a schema would change it.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use jsonschema::Draft;
use serde_json::{Map, Value};

use crate::json::{Input, InvalidInput, JsonEdits, JsonText, MAX_INPUT_VALUES, ParsedObject};
use crate::json_schema::library::{SchemaLibrary, meta_schema_root, validation_options};
use crate::json_schema::schema_graph::{SchemaGraph, number_subschemas};
use crate::json_schema::subschemas::{REFERENCE_KEYWORDS, Subschema};

/// The parts of a schema that matter for defaults. Schemas are known by number; the root is 0.
#[derive(Debug)]
pub(crate) struct SchemaDefaults {
    schemas: Vec<DefaultSchema>,
}

/// One schema.
#[derive(Debug, Default)]
struct DefaultSchema {
    /// The JSON to use if the value is missing.
    default: Option<String>,
    /// The schema rejects its own default, which is then not filled in.
    rejects_default: bool,
    properties: Vec<(String, usize)>,
    items: ItemSchemas,
    /// Schemas that apply to the same value: those of `allOf`, and the target of `$ref`.
    also: Vec<usize>,
}

/// The schemas of an array's elements.
#[derive(Debug, Default)]
enum ItemSchemas {
    #[default]
    None,
    /// One schema for all elements from this index on.
    From(usize, usize),
    /// A schema for each of the first elements.
    ByPosition(Vec<Option<usize>>),
}

fn is_in_meta_schema(subschema: &Subschema<'_>) -> bool {
    let address = subschema.base.as_str();
    meta_schema_root(address.trim_end_matches('#')).is_some()
}

/// Returns whether a schema rejects its own default. What it refers to isn't asked.
fn rejects_own_default(schema: &Map<String, Value>, draft: Draft) -> bool {
    let Some(default) = schema.get("default") else {
        return false;
    };
    let own = Value::Object(schema.clone());
    if has_reference(&own) {
        return false;
    }
    let options = validation_options(SchemaLibrary::default());
    let validator = options.with_draft(draft).build(&own);
    validator.is_ok_and(|validator| !validator.is_valid(default))
}

/// Returns whether a keyword anywhere in `schema` refers to another schema.
fn has_reference(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members
            .iter()
            .any(|(key, value)| REFERENCE_KEYWORDS.contains(&&**key) || has_reference(value)),
        Value::Array(items) => items.iter().any(has_reference),
        _ => false,
    }
}

impl SchemaDefaults {
    /// Collects the defaults of `schema`; returns `None` if there are none.
    pub(crate) fn find(
        schema: &Value,
        draft: Draft,
        library: &SchemaLibrary,
        graph: Option<&SchemaGraph>,
    ) -> Option<Self> {
        let subschemas = library.find_all_subschemas(schema);
        let has_default = |subschema: &Subschema<'_>| {
            subschema.schema.contains_key("default") && !is_in_meta_schema(subschema)
        };
        if !subschemas.iter().any(has_default) {
            return None;
        }
        let numbers = number_subschemas(&subschemas);
        // Before draft 2019-09, a `$ref` replaces the schema that contains it.
        let replaces = matches!(draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7);
        let mut schemas: Vec<DefaultSchema> = subschemas
            .iter()
            .map(|subschema| {
                if is_in_meta_schema(subschema) {
                    return DefaultSchema::default();
                }
                DefaultSchema {
                    rejects_default: rejects_own_default(subschema.schema, draft),
                    ..DefaultSchema::new(subschema, &numbers, replaces)
                }
            })
            .collect();
        for (from, to) in graph.into_iter().flat_map(SchemaGraph::refs) {
            schemas[from].also.push(to);
        }
        Some(Self { schemas })
    }

    /// Fills in the missing values of `input`. Returns `None` if no value is missing.
    ///
    /// # Errors
    /// With its defaults, the input would exceed the limits of an input.
    pub(crate) fn fill(&self, input: &Input) -> Result<Option<Input>, InvalidInput> {
        let rejected = |number: &usize| self.schemas[*number].rejects_default;
        let rejected = (0..self.schemas.len()).filter(rejected).collect();
        self.fill_except(input, &rejected)
    }

    /// Fills in the missing values of `input`. Each default is tried in turn, and kept only if the input is still valid
    /// by `is_valid`. Returns `None` if no default was filled in. `input` is valid as it came.
    pub(crate) fn fill_valid(
        &self,
        input: &Input,
        is_valid: impl Fn(&Input) -> bool,
    ) -> Option<Input> {
        let with_default = |number: &usize| self.schemas[*number].default.is_some();
        let mut skipped: HashSet<usize> = (0..self.schemas.len()).filter(with_default).collect();
        let mut best = None;
        let is_usable = |number: &usize| !self.schemas[*number].rejects_default;
        for number in (0..self.schemas.len())
            .filter(with_default)
            .filter(is_usable)
        {
            skipped.remove(&number);
            match self.fill_except(input, &skipped) {
                Ok(None) => {}
                Ok(Some(filled)) if is_valid(&filled) => best = Some(filled),
                Ok(Some(_)) | Err(_) => {
                    skipped.insert(number);
                }
            }
        }
        best
    }

    /// Fills in the missing values of `input`, but never the defaults of the schemas in `skipped`.
    pub(crate) fn fill_except(
        &self,
        input: &Input,
        skipped: &HashSet<usize>,
    ) -> Result<Option<Input>, InvalidInput> {
        fill_defaults(&self.schemas, skipped, input)
    }
}

impl DefaultSchema {
    fn new(
        subschema: &Subschema<'_>,
        numbers: &HashMap<*const Map<String, Value>, usize>,
        ref_replaces: bool,
    ) -> Self {
        let schema = subschema.schema;
        let default = schema.get("default").map(Value::to_string);
        if ref_replaces && schema.contains_key("$ref") {
            // Authors write a default next to a `$ref` all the same, and it can only mean one thing.
            return Self {
                default,
                ..Self::default()
            };
        }
        let number = |value: &Value| {
            let schema = value.as_object().map(std::ptr::from_ref)?;
            numbers.get(&schema).copied()
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.into_iter().flatten();
        let array_len = |keyword: &str| {
            schema
                .get(keyword)
                .and_then(Value::as_array)
                .map_or(0, Vec::len)
        };
        Self {
            default,
            rejects_default: false,
            properties: properties
                .filter_map(|(name, value)| Some((name.clone(), number(value)?)))
                .collect(),
            items: match schema.get("items") {
                Some(Value::Array(each)) => {
                    ItemSchemas::ByPosition(each.iter().map(number).collect())
                }
                Some(one) => number(one).map_or(ItemSchemas::None, |number| {
                    ItemSchemas::From(array_len("prefixItems"), number)
                }),
                None => ItemSchemas::None,
            },
            also: schema
                .get("allOf")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(number)
                .collect(),
        }
    }

    /// Returns the schema of the element at `index`.
    fn item(&self, index: usize) -> Option<usize> {
        match &self.items {
            ItemSchemas::None => None,
            ItemSchemas::From(first, number) => (index >= *first).then_some(*number),
            ItemSchemas::ByPosition(each) => each.get(index).copied().flatten(),
        }
    }
}

// Fills the defaults of a schema into an input.

/// Fills in the missing values of `input`, to which the first of `schemas` applies, but never the defaults of the
/// schemas in `skipped`. Returns `None` if no value is missing.
///
/// # Errors
/// With its defaults, the input would exceed the limits of an input.
fn fill_defaults(
    schemas: &[DefaultSchema],
    skipped: &HashSet<usize>,
    input: &Input,
) -> Result<Option<Input>, InvalidInput> {
    let mut filler = DefaultFiller {
        schemas,
        skipped,
        expanding: HashSet::new(),
        filled_count: 0,
    };
    let mut edits = JsonEdits::new(input.text());
    filler.visit(&[0], JsonText::new(input.text()), &mut edits)?;
    if edits.is_empty() {
        return Ok(None);
    }
    Input::parse(&edits.apply()).map(Some)
}

/// Fills in one input.
struct DefaultFiller<'s> {
    schemas: &'s [DefaultSchema],
    /// Schemas whose defaults are left out.
    skipped: &'s HashSet<usize>,
    /// Schemas whose default is being filled in itself: a default below itself would never end.
    expanding: HashSet<usize>,
    filled_count: usize,
}

impl DefaultFiller<'_> {
    /// Collects the insertions into `value`, to which `schemas` apply, in text order.
    fn visit<'t>(
        &mut self,
        schemas: &[usize],
        value: JsonText<'t>,
        edits: &mut JsonEdits<'t>,
    ) -> Result<(), InvalidInput> {
        let applicable = self.applicable_schemas(schemas);
        if let Some(object) = value.object() {
            return self.visit_object(&applicable, &object, edits);
        }
        let has_items = |number: &usize| !matches!(self.schemas[*number].items, ItemSchemas::None);
        if !applicable.iter().any(has_items) {
            return Ok(());
        }
        for (index, element) in value.elements().into_iter().flatten().enumerate() {
            let all = self.schemas;
            let item = |number: &usize| all[*number].item(index);
            let of_element: Vec<usize> = applicable.iter().filter_map(item).collect();
            self.visit(&of_element, element, edits)?;
        }
        Ok(())
    }

    fn visit_object<'t>(
        &mut self,
        applicable: &[usize],
        object: &ParsedObject<'t>,
        edits: &mut JsonEdits<'t>,
    ) -> Result<(), InvalidInput> {
        let properties = PropertySchemas::new(self.schemas, applicable);
        let mut present = HashSet::new();
        for (name, member) in object.members() {
            if let Some(index) = properties.index_by_name.get(&**name) {
                present.insert(*index);
                self.visit(&properties.schemas[*index].1, *member, edits)?;
            }
        }
        let mut inserted = String::new();
        for (index, (name, schemas)) in properties.schemas.iter().enumerate() {
            if present.contains(&index) {
                continue;
            }
            let Some(default) = self.expand_default(schemas)? else {
                continue;
            };
            if !object.members().is_empty() || !inserted.is_empty() {
                inserted.push(',');
            }
            inserted.push_str(&Value::from(*name).to_string());
            inserted.push(':');
            inserted.push_str(&default);
        }
        if !inserted.is_empty() {
            edits.insert_at_end(object.json(), inserted);
        }
        Ok(())
    }

    /// Returns the default of a missing value to which `schemas` apply, with the defaults inside it filled in.
    fn expand_default(&mut self, schemas: &[usize]) -> Result<Option<String>, InvalidInput> {
        let all = self.schemas;
        let applicable = self.applicable_schemas(schemas);
        let with_default = applicable
            .iter()
            .filter(|number| !self.skipped.contains(number))
            .find_map(|number| Some((*number, all[*number].default.as_deref()?)));
        let Some((number, default)) = with_default else {
            return Ok(None);
        };
        if !self.expanding.insert(number) {
            return Ok(None);
        }
        self.filled_count += 1;
        if self.filled_count > MAX_INPUT_VALUES {
            return Err(InvalidInput::TooLarge(format!(
                "has more than {MAX_INPUT_VALUES} values with the defaults of its schema"
            )));
        }
        let mut edits = JsonEdits::new(default);
        let visited = self.visit(schemas, JsonText::new(default), &mut edits);
        self.expanding.remove(&number);
        visited.map(|()| Some(edits.apply()))
    }

    /// Returns `schemas` and all that apply to the same value as they do, each once.
    fn applicable_schemas(&self, schemas: &[usize]) -> Vec<usize> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        let mut pending: Vec<usize> = schemas.iter().rev().copied().collect();
        while let Some(number) = pending.pop() {
            if seen.insert(number) {
                found.push(number);
                pending.extend(self.schemas[number].also.iter().rev());
            }
        }
        found
    }
}

/// The properties that several schemas declare for one object, in the order of the schemas.
struct PropertySchemas<'s> {
    /// Each name with all its schemas.
    schemas: Vec<(&'s str, Vec<usize>)>,
    index_by_name: HashMap<&'s str, usize>,
}

impl<'s> PropertySchemas<'s> {
    fn new(all: &'s [DefaultSchema], applicable: &[usize]) -> Self {
        let mut properties = Self {
            schemas: Vec::new(),
            index_by_name: HashMap::new(),
        };
        let declared = applicable
            .iter()
            .flat_map(|number| &all[*number].properties);
        for (name, number) in declared {
            let next = properties.schemas.len();
            let index = *properties.index_by_name.entry(name).or_insert(next);
            if index == next {
                properties.schemas.push((name, Vec::new()));
            }
            properties.schemas[index].1.push(*number);
        }
        properties
    }
}

/// Whether `default` is a key anywhere in `schema`.
pub(crate) fn may_have_defaults(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.contains_key("default") || members.values().any(may_have_defaults)
        }
        Value::Array(items) => items.iter().any(may_have_defaults),
        _ => false,
    }
}
