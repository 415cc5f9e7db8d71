//! The files that a schema's references name: JSON beside tools.yaml. Nothing else is read, and nothing fetched.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::Read;
use std::path::{Component, Path};
use std::rc::Rc;

use jsonschema::{Retrieve, Uri};
use percent_encoding::percent_decode_str;
use serde_json::Value;
use url::Url;

use crate::json_schema::schema::SchemaFault;
use crate::json_schema::walk::{Place, places};

/// What references are relative to: the folder of tools.yaml, whatever it is called.
pub(crate) const BASE: &str = "json-schema:///";
/// The largest file that a `$ref` may name, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// Keywords whose value is a reference.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The files that a schema reaches, by address.
#[derive(Debug, Default)]
pub(crate) struct Library {
    pub(crate) files: BTreeMap<String, File>,
}

/// A file that a schema reaches.
#[derive(Debug)]
pub(crate) struct File {
    /// What it holds.
    pub(crate) value: Value,
    /// JSON pointer of the schema's reference that led to it.
    pub(crate) from: String,
}

impl Library {
    /// Reads every file that `schema` reaches in `dir`. References that lead anywhere else are faults; where one stands
    /// in a file, the fault stands at the reference of `schema` that led there.
    pub(crate) fn of(schema: &Value, dir: &Path) -> (Self, Vec<SchemaFault>) {
        let mut library = Self::default();
        let mut faults = Vec::new();
        let mut open = library.read(schema, BASE, dir, None, &mut faults);
        while let Some((address, file)) = open.pop() {
            if library.files.contains_key(&address) {
                continue;
            }
            let from = Some(file.from.as_str());
            open.extend(library.read(&file.value, &address, dir, from, &mut faults));
            library.files.insert(address, file);
        }
        (library, faults)
    }

    /// Reads the files that the document at `address` names and that are not here yet.
    fn read(
        &self,
        document: &Value,
        address: &str,
        dir: &Path,
        from: Option<&str>,
        faults: &mut Vec<SchemaFault>,
    ) -> Vec<(String, File)> {
        let places = places(document, address);
        let own: BTreeSet<&str> = places.iter().map(|place| place.base.as_str()).collect();
        let mut found: BTreeMap<String, File> = BTreeMap::new();
        for reference in references(&places) {
            let from = from.map_or_else(|| reference.pointer(), str::to_owned);
            let read = target(&reference.place.base, reference.text).and_then(|target| {
                let address = target.as_str();
                let known = own.contains(address) || address == BASE;
                if known || self.files.contains_key(address) || found.contains_key(address) {
                    return Ok(None);
                }
                Ok(Some((address.to_owned(), load(&target, dir)?)))
            });
            match read {
                Ok(None) => {}
                Ok(Some((address, value))) => {
                    found.insert(address, File { value, from });
                }
                Err(fault) => faults.push(SchemaFault {
                    pointer: from,
                    ..fault
                }),
            }
        }
        found.into_iter().collect()
    }
}

impl Retrieve for Library {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn Error + Send + Sync>> {
        let file = self.files.get(uri.as_str()).map(|file| file.value.clone());
        file.ok_or_else(|| "it is not beside tools.yaml".into())
    }
}

impl Library {
    /// The address of the file that `reference` leads to, if to one, and the place there.
    pub(crate) fn find<'r>(&self, reference: &Reference<'_, 'r>) -> Option<(String, &'r str)> {
        let target = target(&reference.place.base, reference.text).ok()?;
        let fragment = reference
            .text
            .split_once('#')
            .map_or("", |(_, place)| place);
        let is_file = self.files.contains_key(target.as_str());
        is_file.then(|| (target.into(), fragment))
    }
}

/// A reference and the place where it stands.
#[derive(Clone, Copy)]
pub(crate) struct Reference<'p, 'a> {
    pub(crate) place: &'p Place<'a>,
    pub(crate) keyword: &'static str,
    pub(crate) text: &'a str,
}

impl Reference<'_, '_> {
    /// JSON pointer of the reference itself.
    pub(crate) fn pointer(&self) -> String {
        format!("{}/{}", self.place.pointer, self.keyword)
    }
}

/// The references that stand at `places`.
pub(crate) fn references<'p, 'a>(
    places: &'p [Place<'a>],
) -> impl Iterator<Item = Reference<'p, 'a>> {
    places.iter().flat_map(|place| {
        REFERENCES.into_iter().filter_map(move |keyword| {
            let text = place.schema.get(keyword)?.as_str()?;
            Some(Reference {
                place,
                keyword,
                text,
            })
        })
    })
}

/// The address of the document that `reference` means.
fn target(base: &Rc<Url>, reference: &str) -> Result<Url, SchemaFault> {
    let mut target = base
        .join(reference)
        .map_err(|error| SchemaFault::new("", format!("`{reference}` is no reference: {error}")))?;
    target.set_fragment(None);
    if climbs_out(base, reference) {
        return Err(outside(reference));
    }
    Ok(target)
}

/// Whether a relative reference has more `..` than `base` has folders; joining would drop them silently.
fn climbs_out(base: &Url, reference: &str) -> bool {
    let path = reference.split(['#', '?']).next().unwrap_or_default();
    if path.contains(':') || base.scheme() != "json-schema" {
        return false;
    }
    let folders = base.path().matches('/').count().saturating_sub(1);
    let mut depth = if path.starts_with('/') { 0 } else { folders };
    percent_decode_str(path)
        .decode_utf8_lossy()
        .split('/')
        .filter(|part| !matches!(*part, "" | "."))
        .any(|part| match (part, depth) {
            ("..", 0) => true,
            ("..", _) => {
                depth -= 1;
                false
            }
            _ => {
                depth += 1;
                false
            }
        })
}

fn outside(reference: &str) -> SchemaFault {
    let message = format!("`{reference}` leads out of the folder of tools.yaml");
    SchemaFault::new("", message)
        .with_hint("copy the file beside tools.yaml, or its schema into `$defs`")
}

/// Reads a file beside tools.yaml.
fn load(target: &Url, dir: &Path) -> Result<Value, SchemaFault> {
    if target.scheme() != "json-schema" || target.host().is_some() {
        let message = format!("`{target}` is not beside tools.yaml; references are never fetched");
        return Err(SchemaFault::new("", message)
            .with_hint("save it as a JSON file beside tools.yaml and refer to that"));
    }
    let name = percent_decode_str(target.path().trim_start_matches('/'))
        .decode_utf8_lossy()
        .into_owned();
    let fault = |cause: &str| {
        SchemaFault::new("", format!("the file `{name}` {cause}")).with_hint(
            "a reference names a JSON file beside tools.yaml, or a place such as `#/$defs/name`",
        )
    };
    let relative = Path::new(&name);
    if !relative
        .components()
        .all(|part| matches!(part, Component::Normal(_)))
    {
        return Err(outside(&name));
    }
    let unreadable = |error: std::io::Error| fault(&format!("can't be read: {error}"));
    let resolved = dir.join(relative).canonicalize().map_err(unreadable)?;
    if !dir
        .canonicalize()
        .is_ok_and(|dir| resolved.starts_with(dir))
    {
        return Err(outside(&name));
    }
    read(&resolved).map_err(|cause| fault(&cause))
}

fn read(file: &Path) -> Result<Value, String> {
    let unreadable = |error: std::io::Error| format!("can't be read: {error}");
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err("is no regular file".to_owned());
    }
    let opened = std::fs::File::open(file).map_err(unreadable)?;
    let mut text = Vec::new();
    opened
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("has more than {MAX_FILE_BYTES} bytes"));
    }
    serde_json::from_slice(&text).map_err(|error| format!("is no JSON: {error}"))
}
