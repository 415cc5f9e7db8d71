//! Keeps what a server answered that isn't text, beside the log. The model reads a line that says where.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::Arc;

use data_encoding::BASE64;

use crate::output::LeadingFile;
use redact::Mask;
use toolq_core::text::format_bytes;

/// How many contents of one answer are saved, of which some may be equal: a record of the log names their files, and nothing
/// else happens while they are written.
const MAX_ATTACHMENTS: usize = 256;

/// Where the contents of a call's answer are kept.
#[derive(Debug)]
pub(crate) struct Attachments {
    /// `None` keeps nothing.
    pub(crate) dir: Option<PathBuf>,
    /// How large one of them may be.
    pub(crate) max_bytes: u64,
    pub(crate) mask: Arc<Mask>,
    /// How many contents there were.
    pub(crate) count: Cell<usize>,
    /// What has been kept, in order.
    pub(crate) kept: RefCell<Vec<PathBuf>>,
}

impl Attachments {
    /// Keeps content in base64, and returns the line that replaces it. `what` names it: `a sound of type audio/wav`.
    pub(crate) fn keep(&self, what: &str, mime_type: &str, base64: &str) -> String {
        let Ok(bytes) = BASE64.decode(base64.as_bytes()) else {
            return format!("[{what} that can't be decoded]");
        };
        let size = format_bytes(bytes.len() as u64);
        if bytes.len() as u64 > self.max_bytes {
            return format!("[{what}, {size}, more than max_saved]");
        }
        if self.count.replace(self.count.get() + 1) >= MAX_ATTACHMENTS {
            return format!("[{what}, {size}, not saved: there are too many]");
        }
        let mut file = LeadingFile::new(self.dir.clone(), self.max_bytes, Arc::clone(&self.mask));
        file.push(&bytes);
        match file.finish(extension_of(mime_type)).1 {
            Some(path) => {
                let line = format!("[{what}, {size}, saved in {}]", path.display());
                let mut kept = self.kept.borrow_mut();
                if !kept.contains(&path) {
                    kept.push(path);
                }
                line
            }
            None => format!("[{what}, {size}, not saved]"),
        }
    }
}

/// Returns the usual extension of files of this type.
fn extension_of(mime_type: &str) -> &'static str {
    match mime_type {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "application/pdf" => "pdf",
        "application/zip" => "zip",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_contents_are_saved_and_no_more_whether_they_are_equal_or_not() {
        for count_of_kinds in [1, 10, 100_000] {
            let dir = tempfile::tempdir().unwrap();
            let attachments = Attachments {
                dir: Some(dir.path().to_owned()),
                max_bytes: 1 << 20,
                mask: Arc::default(),
                count: Cell::default(),
                kept: RefCell::default(),
            };
            let lines = (0..2 * MAX_ATTACHMENTS).map(|number| {
                let content = (number % count_of_kinds).to_string();
                attachments.keep("a sound", "audio/wav", &BASE64.encode(content.as_bytes()))
            });
            let saved = lines.filter(|line| line.contains("saved in")).count();
            assert_eq!(saved, MAX_ATTACHMENTS);
            assert_eq!(
                attachments.kept.take().len(),
                MAX_ATTACHMENTS.min(count_of_kinds)
            );
        }
    }
}
