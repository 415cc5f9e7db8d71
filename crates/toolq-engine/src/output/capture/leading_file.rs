//! Saves the beginning of an output to a file, whether or not anything is cut.

use std::path::PathBuf;
use std::sync::Arc;

use crate::output::capture::saved_file::SavedFile;
use redact::{Mask, MaskedStream};

/// An output whose beginning is saved, masked.
#[derive(Debug)]
pub(crate) struct LeadingFile {
    masked: MaskedStream,
    /// `None` saves nothing.
    dir: Option<PathBuf>,
    max_bytes: u64,
    file: Option<SavedFile>,
    total_bytes: u64,
}

impl LeadingFile {
    /// Saves up to `max_bytes` to a file in `dir`, which is created with the first byte.
    pub(crate) fn new(dir: Option<PathBuf>, max_bytes: u64, mask: Arc<Mask>) -> Self {
        Self {
            masked: MaskedStream::new(mask),
            dir,
            max_bytes,
            file: None,
            total_bytes: 0,
        }
    }

    /// Adds the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        let Self {
            masked,
            dir,
            max_bytes,
            file,
            ..
        } = self;
        masked.push(bytes, |bytes| save(bytes, dir, *max_bytes, file));
    }

    /// Returns how many bytes came, and the file, if there is one, with this extension.
    pub(crate) fn finish(mut self, extension: &str) -> (u64, Option<PathBuf>) {
        let Self {
            masked,
            dir,
            max_bytes,
            file,
            ..
        } = &mut self;
        masked.finish(|bytes| save(bytes, dir, *max_bytes, file));
        let path = self.file.and_then(|file| file.persist_as(extension).ok());
        (self.total_bytes, path)
    }
}

/// Appends to the file. If it can't be written, nothing is saved.
fn save(bytes: &[u8], dir: &mut Option<PathBuf>, max_bytes: u64, file: &mut Option<SavedFile>) {
    let Some(path) = dir.as_ref().filter(|_| !bytes.is_empty()) else {
        return;
    };
    if file.is_none() {
        *file = SavedFile::create(path, max_bytes).ok();
    }
    let saved = file.as_mut().map(|file| file.push(bytes));
    if !matches!(saved, Some(Ok(()))) {
        (*file, *dir) = (None, None);
    }
}
