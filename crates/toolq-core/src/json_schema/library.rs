//! Loads the files that a schema refers to: JSON files in the directory of tools.yaml. Nothing else is read, and
//! nothing is fetched.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;
use std::rc::Rc;

use jsonschema::{Draft, Retrieve, Uri};
use serde_json::Value;
use url::Url;

use crate::json_schema::meta_schemas::{find_meta_schema, meta_schema_root};
use crate::json_schema::references::{SchemaReference, find_references, resolve_target};
use crate::json_schema::schema_error::SchemaError;
use crate::json_schema::schema_file::load_file;
use crate::json_schema::subschemas::{Subschema, find_subschemas};

/// The base of all references. It represents the directory of tools.yaml, regardless of its name.
pub(crate) const BASE_URI: &str = "json-schema:///";

/// The files that a schema reaches, by the address that references to them resolve to.
#[derive(Debug, Clone, Default)]
pub(crate) struct SchemaLibrary {
    pub(crate) files: BTreeMap<String, LibraryFile>,
    /// The draft of documents without `$schema`.
    pub(crate) draft: Draft,
    /// The addresses that documents have by their `$id`, and the files that they are.
    ids: Vec<DocumentId>,
}

/// A file that a schema reaches.
#[derive(Debug, Clone)]
pub(crate) struct LibraryFile {
    /// Its path below the directory of tools.yaml.
    pub(crate) name: String,
    /// Its content.
    pub(crate) value: Value,
    /// JSON pointer to the reference in the schema that led to the file.
    pub(crate) referenced_at: String,
}

/// A document whose `$id` is an address somewhere else.
#[derive(Debug, Clone)]
struct DocumentId {
    /// The address by its `$id`.
    id: Url,
    /// The address of its file.
    file: Url,
}

impl SchemaLibrary {
    /// Reads every file that `schema` reaches in `dir`. References that lead anywhere else are errors. An error in a
    /// file is reported at the reference in `schema` that led there.
    pub(crate) fn load(schema: &Value, dir: &Path) -> (Self, Vec<SchemaError>) {
        let mut library = Self {
            draft: Draft::default().detect(schema),
            ..Self::default()
        };
        let mut errors = Vec::new();
        library.add_id(schema, BASE_URI, BASE_URI);
        let mut pending = library.read_files(schema, BASE_URI, dir, None, &mut errors);
        while let Some((address, mut file)) = pending.pop() {
            if library.files.contains_key(&address) {
                continue;
            }
            if meta_schema_root(&address).is_none() {
                library.add_id(&file.value, &address, &format!("{BASE_URI}{}", file.name));
                library.remove_foreign_id(&mut file.value);
            }
            let from = Some(file.referenced_at.as_str());
            pending.extend(library.read_files(&file.value, &address, dir, from, &mut errors));
            library.files.insert(address, file);
        }
        (library, errors)
    }

    /// Notes the address that the `$id` of the document at `address` gives it. Documents next to it in that address
    /// space are files next to `file`.
    fn add_id(&mut self, document: &Value, address: &str, file: &str) {
        let subschemas = find_subschemas(document, address, self.draft);
        let (Some(root), Ok(file)) = (subschemas.first(), Url::parse(file)) else {
            return;
        };
        if root.base.scheme() != file.scheme() {
            let id = (*root.base).clone();
            self.ids.push(DocumentId { id, file });
        }
    }

    /// Removes an `$id` that is an address somewhere else. A file has the address that led to it.
    fn remove_foreign_id(&self, document: &mut Value) {
        let id_keyword = self.draft.detect(document).id_keyword();
        let id = document.get(id_keyword).and_then(Value::as_str);
        let is_foreign = id.is_some_and(|id| Url::parse(id).is_ok());
        if let Some(object) = document.as_object_mut().filter(|_| is_foreign) {
            object.shift_remove(id_keyword);
        }
    }

    /// Reads the files that the document at `address` names and that aren't loaded yet.
    fn read_files(
        &self,
        document: &Value,
        address: &str,
        dir: &Path,
        from: Option<&str>,
        errors: &mut Vec<SchemaError>,
    ) -> Vec<(String, LibraryFile)> {
        let subschemas = find_subschemas(document, address, self.draft);
        let own_addresses: BTreeSet<&str> = subschemas
            .iter()
            .map(|subschema| subschema.base.as_str())
            .collect();
        let mut found: BTreeMap<String, LibraryFile> = BTreeMap::new();
        for reference in find_references(&subschemas) {
            let from = from.map_or_else(|| reference.pointer(), str::to_owned);
            let loaded =
                resolve_target(&reference.subschema.base, reference.text).and_then(|target| {
                    let address = target.as_str();
                    let is_own = own_addresses.contains(address) || address == BASE_URI;
                    if is_own || self.files.contains_key(address) || found.contains_key(address) {
                        return Ok(None);
                    }
                    let (name, value) = self.load_target(&target, dir)?;
                    Ok(Some((address.to_owned(), name, value)))
                });
            match loaded {
                Ok(None) => {}
                Ok(Some((address, name, value))) => {
                    let file = LibraryFile {
                        name,
                        value,
                        referenced_at: from,
                    };
                    found.insert(address, file);
                }
                Err(fault) => errors.push(SchemaError {
                    pointer: from,
                    ..fault
                }),
            }
        }
        found.into_iter().collect()
    }

    /// Loads the document that `target` is the address of: a meta-schema, a file next to tools.yaml, or a file whose
    /// place relative to a document that is already loaded is the same as by the `$id` of that document. Returns it with
    /// its name.
    fn load_target(&self, target: &Url, dir: &Path) -> Result<(String, Value), SchemaError> {
        if let Some(value) = find_meta_schema(target.as_str()) {
            return Ok((target.to_string(), value));
        }
        let by_id = self.find_by_id(target);
        let Some((known, relative)) = by_id.filter(|_| target.scheme() != "json-schema") else {
            return load_file(target, dir);
        };
        let to_id_error = |error: SchemaError| SchemaError {
            message: format!(
                "`{target}` is `{relative}` relative to the `$id` `{}`: {}",
                known.id, error.message
            ),
            ..error
        };
        let file = resolve_target(&Rc::new(known.file.clone()), &relative).map_err(to_id_error)?;
        load_file(&file, dir).map_err(to_id_error)
    }

    /// Returns the document whose `$id` has the most in common with `target`, and what `target` is relative to it.
    fn find_by_id(&self, target: &Url) -> Option<(&DocumentId, String)> {
        let common = |known: &&DocumentId| common_base_len(&known.id, target);
        let nearest = self.ids.iter().max_by_key(common)?;
        let relative = nearest.id.make_relative(target)?;
        (common(&nearest) > 0).then_some((nearest, relative))
    }
}

/// Returns how many leading parts two addresses share: the origin, and then directories. 0 if the origins differ.
fn common_base_len(id: &Url, target: &Url) -> usize {
    let origin = |url: &Url| (url.scheme().to_owned(), url.authority().to_owned());
    if id.cannot_be_a_base() || origin(id) != origin(target) {
        return 0;
    }
    let parts = id.path().split('/').zip(target.path().split('/'));
    parts.take_while(|(left, right)| left == right).count()
}

impl Retrieve for SchemaLibrary {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn Error + Send + Sync>> {
        let file = self.files.get(uri.as_str()).map(|file| file.value.clone());
        file.ok_or_else(|| "it isn't a file next to tools.yaml".into())
    }
}

impl SchemaLibrary {
    /// Returns the paths of the files below the directory of tools.yaml. Meta-schemas aren't files.
    pub(crate) fn file_names(&self) -> impl Iterator<Item = &str> {
        let files = self.files.iter();
        let files = files.filter(|(address, _)| meta_schema_root(address).is_none());
        files.map(|(_, file)| file.name.as_str())
    }

    /// Whether a schema refers to the meta-schema of a draft that isn't its own.
    pub(crate) fn has_foreign_meta_schema(&self) -> bool {
        let roots = self.files.keys().filter_map(|file| meta_schema_root(file));
        roots.into_iter().any(|(_, draft)| draft != self.draft)
    }

    /// Finds all schemas in `schema`, and then those in the files.
    pub(crate) fn find_all_subschemas<'a>(&'a self, schema: &'a Value) -> Vec<Subschema<'a>> {
        let mut subschemas = find_subschemas(schema, BASE_URI, self.draft);
        for (address, file) in &self.files {
            let first = subschemas.len();
            let in_file = find_subschemas(&file.value, address, self.draft).into_iter();
            subschemas.extend(in_file.map(|subschema| Subschema {
                parent: subschema.parent.map(|parent| parent + first),
                ..subschema
            }));
        }
        subschemas
    }

    /// Returns the address of the file that `reference` leads to, and the fragment; `None` if it doesn't lead to a
    /// file.
    pub(crate) fn find_target<'r>(
        &self,
        reference: &SchemaReference<'_, 'r>,
    ) -> Option<(String, &'r str)> {
        let target = resolve_target(&reference.subschema.base, reference.text).ok()?;
        let fragment = reference
            .text
            .split_once('#')
            .map_or("", |(_, fragment)| fragment);
        let is_file = self.files.contains_key(target.as_str());
        is_file.then(|| (target.into(), fragment))
    }
}
