//! Which schema leads to which: by standing in it, or by a reference. Of this graph it can be told how much work an
//! input may cause before any comes.

use std::collections::{BTreeSet, HashMap};

use jsonschema::{Draft, Registry};
use serde_json::{Map, Value};

use crate::json_schema::library::{BASE, Library, references};
use crate::json_schema::schema::SchemaFault;
use crate::json_schema::walk::{Place, places};

/// The schemas of a document and its files, by number; the root is 0.
#[derive(Debug)]
pub(crate) struct Links {
    /// The schemas that each leads to.
    to: Vec<Vec<usize>>,
    /// Those that references lead to.
    referred: Vec<usize>,
}

impl Links {
    /// The links of `schema` and the files that it reaches; none where it has no reference at all.
    ///
    /// # Errors
    /// The references that lead nowhere.
    pub(crate) fn of(
        schema: &Value,
        draft: Draft,
        library: &Library,
    ) -> Result<Option<Self>, Vec<SchemaFault>> {
        let mut all = places(schema, BASE);
        if references(&all).next().is_none() {
            return Ok(None);
        }
        let own = all.len();
        for (address, file) in &library.files {
            let first = all.len();
            all.extend(places(&file.value, address).into_iter().map(|place| Place {
                parent: place.parent.map(|parent| parent + first),
                ..place
            }));
        }
        let registry = registry(schema, draft, library)
            .map_err(|error| vec![SchemaFault::new("", error.to_string())])?;
        let mut links = Self {
            to: vec![Vec::new(); all.len()],
            referred: Vec::new(),
        };
        for (number, place) in all.iter().enumerate() {
            if let Some(parent) = place.parent {
                links.to[parent].push(number);
            }
        }
        let faults = links.refer(&all, own, &registry);
        if faults.is_empty() {
            Ok(Some(links))
        } else {
            Err(faults)
        }
    }

    /// Adds what the references lead to; gives those that lead nowhere. The first `own` places are the schema's, the
    /// others its files'.
    fn refer(
        &mut self,
        all: &[Place<'_>],
        own: usize,
        registry: &Registry<'_>,
    ) -> Vec<SchemaFault> {
        let numbers: HashMap<*const Map<String, Value>, usize> = all
            .iter()
            .enumerate()
            .map(|(number, place)| (std::ptr::from_ref(place.schema), number))
            .collect();
        let mut faults = Vec::new();
        for reference in references(all) {
            let number = numbers[&std::ptr::from_ref(reference.place.schema)];
            let base = jsonschema::uri::from_str(reference.place.base.as_str());
            match base.and_then(|base| registry.resolver(base).lookup(reference.text)) {
                Ok(resolved) => {
                    let target = resolved.contents().as_object().map(std::ptr::from_ref);
                    if let Some(target) = target.and_then(|target| numbers.get(&target)) {
                        self.to[number].push(*target);
                        self.referred.push(*target);
                    }
                }
                Err(error) => {
                    let pointer = if number < own {
                        reference.pointer()
                    } else {
                        String::new()
                    };
                    let message = format!("`{}` leads nowhere: {error}", reference.text);
                    faults.push(SchemaFault::new(pointer, message));
                }
            }
        }
        faults
    }

    /// How many schemas there are once every reference is replaced by what it leads to, down to those that lead back.
    pub(crate) fn unfolded(&self) -> u64 {
        self.ways(0, 1)
    }

    /// In how many ways a schema leads back to itself, of the one that does most: above 1, what an input can cause
    /// multiplies with each of its levels.
    pub(crate) fn growth(&self) -> u64 {
        let targets: BTreeSet<usize> = self.referred.iter().copied().collect();
        targets
            .into_iter()
            .map(|target| self.ways(target, 0))
            .max()
            .unwrap_or(0)
    }

    /// Counts the ways on from `start`: one for each that comes back to it, and `other` for every schema on the way,
    /// once for each way there. A way ends where it would go in a circle.
    fn ways(&self, start: usize, other: u64) -> u64 {
        let mut known: Vec<Option<u64>> = vec![None; self.to.len()];
        known[start] = Some(1);
        let mut open = vec![(start, 0, other)];
        while let Some((number, next, sum)) = open.pop() {
            let Some(&target) = self.to[number].get(next) else {
                known[number] = Some(sum);
                continue;
            };
            if let Some(found) = known[target] {
                open.push((number, next + 1, sum.saturating_add(found)));
            } else {
                known[target] = Some(other);
                open.push((number, next, sum));
                open.push((target, 0, other));
            }
        }
        known[start].unwrap_or(0)
    }
}

fn registry<'r>(
    schema: &'r Value,
    draft: Draft,
    library: &'r Library,
) -> Result<Registry<'r>, jsonschema::ReferencingError> {
    let mut builder = Registry::new()
        .draft(draft)
        .add(BASE, draft.create_resource_ref(schema))?;
    for (address, file) in &library.files {
        let draft = draft.detect(&file.value);
        builder = builder.add(address, draft.create_resource_ref(&file.value))?;
    }
    builder.prepare()
}
