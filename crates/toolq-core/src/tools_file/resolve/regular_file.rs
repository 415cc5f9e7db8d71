//! Reads files that tools.yaml names.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::text::decode_text;

/// Returns the text of a file of up to `max_bytes` bytes, or why it can't be used.
pub(crate) fn read_regular_file(path: &Path, max_bytes: u64) -> Result<String, String> {
    let found = path.metadata().map_err(|error| error.to_string())?;
    // A named pipe would never end.
    if !found.is_file() {
        return Err("it isn't a regular file".to_owned());
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let read = file.take(max_bytes + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > max_bytes {
        return Err(format!("it is larger than {} MiB", max_bytes >> 20));
    }
    decode_text(bytes)
}
