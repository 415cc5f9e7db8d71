//! Fills the defaults of a schema into an input.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::json::{Input, InvalidInput, JsonEdits, JsonText, MAX_INPUT_VALUES, ParsedObject};
use crate::json_schema::defaults::{DefaultSchema, ItemSchemas};

/// Fills in the missing values of `input`, to which the first of `schemas` applies, but never the defaults of the
/// schemas in `skipped`. Returns `None` if no value is missing.
///
/// # Errors
/// With its defaults, the input would exceed the limits of an input.
pub(super) fn fill_defaults(
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
