//! Reads schemas from files in the directory of tools.yaml, and from nowhere else.

use std::io::Read;
use std::path::{Component, Path};

use percent_encoding::percent_decode_str;
use serde_json::Value;
use url::Url;

use crate::json::find_lost_digits;
use crate::json_schema::references::outside_error;
use crate::json_schema::schema_error::SchemaError;

/// Maximum size of a file that a `$ref` names, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Reads a file in the directory of tools.yaml. Returns its path below that directory, too.
pub(crate) fn load_file(target: &Url, dir: &Path) -> Result<(String, Value), SchemaError> {
    if target.scheme() != "json-schema" || target.host().is_some() {
        let message =
            format!("`{target}` isn't a file next to tools.yaml; references are never fetched");
        return Err(SchemaError::new("", message)
            .with_hint("save it as a JSON file next to tools.yaml and refer to that"));
    }
    let name = percent_decode_str(target.path().trim_start_matches('/'))
        .decode_utf8_lossy()
        .into_owned();
    let file_error = |cause: &str| {
        SchemaError::new("", format!("the file `{name}` {cause}")).with_hint(
            "a reference names a JSON file next to tools.yaml, or a location such as `#/$defs/name`",
        )
    };
    let relative = Path::new(&name);
    if !relative
        .components()
        .all(|part| matches!(part, Component::Normal(_)))
    {
        return Err(outside_error(&name));
    }
    let unreadable = |error: std::io::Error| file_error(&format!("can't be read: {error}"));
    let resolved = dir.join(relative).canonicalize().map_err(unreadable)?;
    if !dir
        .canonicalize()
        .is_ok_and(|dir| resolved.starts_with(dir))
    {
        return Err(outside_error(&name));
    }
    let value = read_json_file(&resolved).map_err(|cause| file_error(&cause))?;
    Ok((name, value))
}

fn read_json_file(file: &Path) -> Result<Value, String> {
    let unreadable = |error: std::io::Error| format!("can't be read: {error}");
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err("isn't a regular file".to_owned());
    }
    let opened = std::fs::File::open(file).map_err(unreadable)?;
    let mut text = Vec::new();
    opened
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("is larger than {MAX_FILE_BYTES} bytes"));
    }
    let value = serde_json::from_slice(&text).map_err(|error| format!("isn't JSON: {error}"))?;
    match find_lost_digits(&String::from_utf8_lossy(&text)) {
        Some(integer) => Err(format!("has {integer}")),
        None => Ok(value),
    }
}
