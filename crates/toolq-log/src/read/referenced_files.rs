//! The files of a log's folder that a record names, in its content or in its metadata: whether they are as they were
//! written.

use std::io::Read as _;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::open::folder_of;
use crate::records::{Body, BodyError, Record, hex, is_digest, open_regular, unreadable};

/// Bytes of an output that are read at once.
const READ: usize = 64 << 10;

impl Record<'_> {
    /// Checks every file of the folder of `log` that this record names, and returns how many it names.
    ///
    /// # Errors
    /// One is missing, is no regular file, or has other bytes.
    pub fn check_files(&self, log: &Path) -> Result<u64, BodyError> {
        let folder = folder_of(log);
        let wrong = |file: &str, what| BodyError {
            folder: folder.clone(),
            file: file.to_owned(),
            what,
        };
        let named: Named<'_> = serde_json::from_str(self.metadata.get()).unwrap_or_default();
        let before = named.input_before_coercion.map(Body::of);
        let before = before
            .transpose()
            .map_err(|flaw| wrong("of input_before_coercion", flaw.to_string()))?;
        let bodies = before.iter().chain([&self.content]);
        let mut files = 0;
        for body in bodies.filter(|body| body.is_stored()) {
            body.load(log)?;
            files += 1;
        }
        if let Some(saved) = &named.saved {
            // A log may be read from another folder than it was written from.
            let name = saved.rsplit('/').next().unwrap_or(saved);
            check_saved(&folder, name).map_err(|what| wrong(name, what))?;
            files += 1;
        }
        Ok(files)
    }
}

/// What metadata names, beside the content.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Named<'r> {
    /// Of a `tool_call`.
    #[serde(borrow)]
    input_before_coercion: Option<&'r RawValue>,
    /// Of what ends a call.
    saved: Option<String>,
}

/// The whole of an output is named by its digest. It may be large.
fn check_saved(folder: &Path, name: &str) -> Result<(), String> {
    let Some(digest) = name.strip_suffix(".txt").filter(|name| is_digest(name)) else {
        return Err("is the name of no file that toolq made".to_owned());
    };
    let (mut file, _) = open_regular(folder, name)?;
    let (mut hash, mut bytes) = (Sha256::new(), vec![0; READ]);
    loop {
        match file.read(&mut bytes).map_err(|error| unreadable(&error))? {
            0 => break,
            read => hash.update(&bytes[..read]),
        }
    }
    if hex(&hash.finalize()) != digest {
        return Err("has other bytes than were written".to_owned());
    }
    Ok(())
}
