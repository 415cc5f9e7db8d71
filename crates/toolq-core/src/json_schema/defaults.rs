//! Fills in missing values from the schema's `default` keywords, before an input is validated.
//!
//! `properties`, `items`, `allOf` and `$ref`s to a place in the schema are followed. Below `anyOf`, `oneOf`, `not` and `if`
//! nothing is filled in: which of their schemas apply is known only after validation. Nor is anything from a meta-schema: its
//! defaults only say what a missing keyword means, and `"not": true` in a schema would change it.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use jsonschema::Draft;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use crate::json::{
    Input, InvalidInput, JsonEdits, JsonText, MAX_INPUT_BYTES, MAX_INPUT_VALUES, ParsedObject,
};
use crate::json_schema::library::{SchemaLibrary, validation_options};
use crate::json_schema::problem_details::{ProblemDetail, collect_problem_details};
use crate::json_schema::subschemas::{BASE_URI, REFERENCE_KEYWORDS, find_subschemas};

type Schema = Map<String, Value>;

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

/// The keywords for schemas that others refer to.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// Finds the defaults that their own schemas reject: the pointers to these schemas, with the problems. One that refers to anything but
/// the definitions of `schema` isn't asked.
pub(crate) fn find_invalid_defaults(schema: &Value) -> Vec<(String, Vec<ProblemDetail>)> {
    let draft = Draft::default().detect(schema);
    let subschemas = find_subschemas(schema, BASE_URI, draft).into_iter();
    let rejected = subschemas.filter_map(|subschema| {
        let default = subschema.schema.get("default")?;
        let mut own = subschema.schema.clone();
        for (name, definitions) in DEFINITIONS
            .iter()
            .filter_map(|name| Some((name, schema.get(name)?)))
        {
            own.entry(*name).or_insert_with(|| definitions.clone());
        }
        let own = Value::Object(own);
        if refers_elsewhere(&own) {
            return None;
        }
        let options = validation_options(SchemaLibrary::default()).with_draft(draft);
        let problems = collect_problem_details(&options.build(&own).ok()?, &own, default);
        (!problems.is_empty()).then_some((subschema.pointer, problems))
    });
    rejected.collect()
}

/// Returns a schema without the defaults that their own schemas reject.
pub(crate) fn without_invalid_defaults(schema: &Value) -> Value {
    let mut usable = schema.clone();
    for (pointer, _) in find_invalid_defaults(schema) {
        let schema = usable.pointer_mut(&pointer);
        if let Some(schema) = schema.and_then(Value::as_object_mut) {
            schema.remove("default");
        }
    }
    usable
}

/// Returns whether a keyword anywhere in `schema` refers to another schema.
fn refers_elsewhere(schema: &Value) -> bool {
    let is_definition = |target: &Value| {
        let place = target.as_str().and_then(|target| target.strip_prefix("#/"));
        place.is_some_and(|place| DEFINITIONS.iter().any(|name| place.starts_with(name)))
    };
    match schema {
        Value::Object(members) => members.iter().any(|(key, value)| {
            let is_reference = REFERENCE_KEYWORDS.contains(&&**key) && value.is_string();
            is_reference && !is_definition(value) || refers_elsewhere(value)
        }),
        Value::Array(items) => items.iter().any(refers_elsewhere),
        _ => false,
    }
}

/// Fills in the missing values of `input`, to which `schema` applies. Returns `None` if no value is missing.
///
/// # Errors
/// With its defaults, the input would exceed the limits of an input.
pub(crate) fn fill_defaults(schema: &Value, input: &Input) -> Result<Option<Input>, InvalidInput> {
    let draft = Draft::default().detect(schema);
    let mut filler = DefaultFiller {
        root: schema,
        ref_replaces: matches!(draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7),
        expanding: HashSet::new(),
        filled_count: 0,
        filled_bytes: 0,
        has_embedded: schema
            .as_object()
            .is_some_and(|root| root.values().any(has_uri)),
    };
    let mut edits = JsonEdits::new(input.text());
    let schemas: Vec<&Schema> = schema.as_object().into_iter().collect();
    filler.visit(&schemas, JsonText::new(input.text()), &mut edits)?;
    if edits.is_empty() {
        return Ok(None);
    }
    Input::parse(&edits.apply()).map(Some)
}

/// Whether a URI is given to a schema anywhere in `value`.
fn has_uri(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            let id = members.get("$id").and_then(Value::as_str);
            id.is_some_and(|id| !id.starts_with('#')) || members.values().any(has_uri)
        }
        Value::Array(items) => items.iter().any(has_uri),
        _ => false,
    }
}

/// Finds the schema that names itself so, as `$anchor` or, before draft 2019-09, as `$id`.
fn find_anchor<'s>(schema: &'s Value, name: &str) -> Option<&'s Schema> {
    let names_itself = |schema: &Schema| {
        let id = schema.get("$id").and_then(Value::as_str);
        schema.get("$anchor").and_then(Value::as_str) == Some(name)
            || id.and_then(|id| id.strip_prefix('#')) == Some(name)
    };
    match schema {
        Value::Object(schema) if names_itself(schema) => Some(schema),
        Value::Object(members) => members.values().find_map(|value| find_anchor(value, name)),
        Value::Array(items) => items.iter().find_map(|item| find_anchor(item, name)),
        _ => None,
    }
}

/// Fills in one input.
struct DefaultFiller<'s> {
    root: &'s Value,
    /// Before draft 2019-09, a `$ref` replaces the schema that contains it.
    ref_replaces: bool,
    /// Schemas whose default is being filled in itself: a default below itself would never end.
    expanding: HashSet<*const Schema>,
    filled_count: usize,
    filled_bytes: usize,
    /// Schemas with a URI of their own are embedded, below which a `#/…` leads elsewhere. No reference is followed then.
    has_embedded: bool,
}

impl<'s> DefaultFiller<'s> {
    /// Returns the value of a keyword, if it applies.
    fn keyword(&self, schema: &'s Schema, name: &str) -> Option<&'s Value> {
        let is_replaced = self.ref_replaces && schema.contains_key("$ref");
        schema.get(name).filter(|_| !is_replaced)
    }

    /// Returns the schema of the element at `index`.
    fn item(&self, schema: &'s Schema, index: usize) -> Option<&'s Schema> {
        let prefix = schema.get("prefixItems").and_then(Value::as_array);
        let item = match self.keyword(schema, "items")? {
            Value::Array(each) => each.get(index),
            one => Some(one).filter(|_| index >= prefix.map_or(0, Vec::len)),
        };
        item?.as_object()
    }

    /// Returns the schema that the `$ref` of a schema leads to.
    fn referred(&self, schema: &'s Schema) -> Option<&'s Schema> {
        if self.has_embedded {
            return None;
        }
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        let pointer = percent_decode_str(pointer).decode_utf8().ok()?;
        match self.root.pointer(&pointer) {
            Some(found) => found.as_object(),
            None => find_anchor(self.root, &pointer),
        }
    }

    /// Collects the insertions into `value`, to which `schemas` apply, in text order.
    fn visit<'t>(
        &mut self,
        schemas: &[&'s Schema],
        value: JsonText<'t>,
        edits: &mut JsonEdits<'t>,
    ) -> Result<(), InvalidInput> {
        let applicable = self.applicable_schemas(schemas);
        if let Some(object) = value.object() {
            return self.visit_object(&applicable, &object, edits);
        }
        let has_items = |schema: &&'s Schema| self.keyword(schema, "items").is_some();
        if !applicable.iter().any(has_items) {
            return Ok(());
        }
        for (index, element) in value.elements().into_iter().flatten().enumerate() {
            let of_element = applicable
                .iter()
                .filter_map(|schema| self.item(schema, index))
                .collect::<Vec<_>>();
            self.visit(&of_element, element, edits)?;
        }
        Ok(())
    }

    fn visit_object<'t>(
        &mut self,
        applicable: &[&'s Schema],
        object: &ParsedObject<'t>,
        edits: &mut JsonEdits<'t>,
    ) -> Result<(), InvalidInput> {
        let properties = self.property_schemas(applicable);
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
            let Some(default) = self.expand_default(name, schemas)? else {
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

    /// Returns the default of the missing value `name` to which `schemas` apply, with the defaults inside it filled in.
    fn expand_default(
        &mut self,
        name: &str,
        schemas: &[&'s Schema],
    ) -> Result<Option<String>, InvalidInput> {
        let applicable = self.applicable_schemas(schemas).into_iter();
        let mut with_default =
            applicable.filter_map(|schema| Some((schema, schema.get("default")?.to_string())));
        let Some((schema, default)) = with_default.next() else {
            return Ok(None);
        };
        if !self.expanding.insert(schema) {
            return Ok(None);
        }
        self.filled_count += 1;
        if self.filled_count > MAX_INPUT_VALUES {
            return Err(InvalidInput::TooLarge(format!(
                "has more than {MAX_INPUT_VALUES} values with the defaults of its schema"
            )));
        }
        self.filled_bytes += name.len() + default.len();
        if self.filled_bytes > MAX_INPUT_BYTES {
            return Err(InvalidInput::TooLarge(format!(
                "has more than {MAX_INPUT_BYTES} bytes with the defaults of its schema"
            )));
        }
        let mut edits = JsonEdits::new(&default);
        let visited = self.visit(schemas, JsonText::new(&default), &mut edits);
        self.expanding.remove(&std::ptr::from_ref(schema));
        visited.map(|()| Some(edits.apply()))
    }

    /// Returns `schemas` and all that apply to the same value as they do, each once: those of `allOf`, and the target of `$ref`.
    fn applicable_schemas(&self, schemas: &[&'s Schema]) -> Vec<&'s Schema> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        let mut pending: Vec<&Schema> = schemas.iter().rev().copied().collect();
        while let Some(schema) = pending.pop() {
            if !seen.insert(std::ptr::from_ref(schema)) {
                continue;
            }
            found.push(schema);
            pending.extend(self.referred(schema));
            let parts = self.keyword(schema, "allOf").and_then(Value::as_array);
            pending.extend(
                parts
                    .into_iter()
                    .flatten()
                    .rev()
                    .filter_map(Value::as_object),
            );
        }
        found
    }

    /// Returns the properties that several schemas declare for one object, in the order of the schemas.
    fn property_schemas(&self, applicable: &[&'s Schema]) -> PropertySchemas<'s> {
        let mut properties = PropertySchemas::default();
        for schema in applicable {
            let declared = self
                .keyword(schema, "properties")
                .and_then(Value::as_object);
            for (name, schema) in declared.into_iter().flatten() {
                let Some(schema) = schema.as_object() else {
                    continue;
                };
                let next = properties.schemas.len();
                let index = *properties.index_by_name.entry(name).or_insert(next);
                if index == next {
                    properties.schemas.push((name, Vec::new()));
                }
                properties.schemas[index].1.push(schema);
            }
        }
        properties
    }
}

/// Properties of one object.
#[derive(Default)]
struct PropertySchemas<'s> {
    /// Each name with all its schemas.
    schemas: Vec<(&'s str, Vec<&'s Schema>)>,
    index_by_name: HashMap<&'s str, usize>,
}
