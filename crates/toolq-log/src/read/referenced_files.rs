//! Verifies the files in a log's blob directory that a record refers to, in its content or in its metadata.

use std::io::Read as _;
use std::path::Path;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::open::blob_dir_for;
use crate::read::Corruption;
use crate::records::{
    BlobError, CallEndRecord, CallRecord, Record, RecordKind, ServerEndRecord, is_file_extension,
    is_sha256_hex, open_regular_file, read_error_text,
};

/// How much of a saved output is read at a time, in bytes.
const READ_CHUNK_BYTES: usize = 64 << 10;

impl Record<'_> {
    /// Verifies every file in the blob directory of `log` that this record refers to, and returns how many there are.
    ///
    /// # Errors
    /// A file is missing, isn't a regular file, or doesn't match its SHA-256.
    pub fn check_referenced_files(&self, log: &Path) -> Result<u64, BlobError> {
        let dir = blob_dir_for(log);
        let blob_error = |file: &str, problem| BlobError {
            dir: dir.clone(),
            file: file.to_owned(),
            problem,
        };
        let invalid = |error: Corruption| blob_error("of the metadata", error.to_string());
        let (mut input_before, mut saved) = (None, Vec::new());
        match &self.kind {
            RecordKind::ToolCall => {
                let call: CallRecord<'_> = self.parse_metadata().map_err(invalid)?;
                input_before = call.input_before_coercion;
            }
            RecordKind::ServerEnd => {
                let end: ServerEndRecord<'_> = self.parse_metadata().map_err(invalid)?;
                saved.extend(end.stderr_saved);
            }
            kind if kind.ends_call() => {
                let end: CallEndRecord<'_> = self.parse_metadata().map_err(invalid)?;
                saved.extend(end.saved);
                saved.extend(end.attachments);
            }
            _ => {}
        }
        let contents = input_before.iter().chain([&self.content]);
        let mut file_count = 0;
        for content in contents.filter(|content| content.is_stored()) {
            content.load(log)?;
            file_count += 1;
        }
        for saved in &saved {
            // The log may be read from another directory than it was written from, so only the file name counts.
            let name = saved.rsplit('/').next().unwrap_or(saved);
            check_saved_output(&dir, name).map_err(|problem| blob_error(name, problem))?;
            file_count += 1;
        }
        Ok(file_count)
    }
}

/// Verifies a saved output or an attachment, which is named after its digest. It is read in chunks, since it may be large.
fn check_saved_output(dir: &Path, name: &str) -> Result<(), String> {
    let digest = match name.split_once('.') {
        Some((digest, extension)) if is_file_extension(extension) && is_sha256_hex(digest) => {
            digest
        }
        _ => return Err("doesn't have a name that toolq generates".to_owned()),
    };
    let (mut file, _) = open_regular_file(dir, name)?;
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; READ_CHUNK_BYTES]);
    loop {
        match file
            .read(&mut chunk)
            .map_err(|error| read_error_text(&error))?
        {
            0 => break,
            read => hash.update(&chunk[..read]),
        }
    }
    if HEXLOWER.encode(&hash.finalize()) != digest {
        return Err("doesn't match its SHA-256".to_owned());
    }
    Ok(())
}
